# plain_artifacts: big
for n in range(8): open(f'{n}.csv', 'wb').write(b'x' * 1000000)