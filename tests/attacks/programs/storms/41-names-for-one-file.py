# stopped: names for one file

open('x', 'w')
for n in range(10**7): os.link('x', f'{n}')
