# held: write
each(lambda path: open(path, 'w').write('x')); each(lambda path: open(path, 'r+b').write(b'x'))