# plain_artifacts: too many
for n in range(10000): open(f'{n}.csv', 'w').write('x')