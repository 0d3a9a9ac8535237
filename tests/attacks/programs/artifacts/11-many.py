# plain_artifacts: many
for n in range(400): open(f'{n}.csv', 'w').write('x')