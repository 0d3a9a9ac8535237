# stopped: files
for n in range(10**7): open(f'{n}', 'w').close()