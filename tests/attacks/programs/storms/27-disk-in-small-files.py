# stopped: disk in small files
for n in range(10**6): open(f'{n}', 'wb').write(b'x' * 100000)