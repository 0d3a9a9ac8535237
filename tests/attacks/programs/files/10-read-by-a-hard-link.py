# held: read by a hard link

each(lambda path: (os.link(path, 'x'), peek('x'))); each(lambda p: os.link(p, '/tmp/x'))
