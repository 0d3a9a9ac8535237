# stopped: attributes of files

open('x', 'w')
for n in range(10**5): os.setxattr('x', f'user.{n}', b'x' * 60000)
