# held: make files next to others

each(lambda path: open(path + '2', 'w')); each(lambda path: os.mkfifo(path + '3'))
each(lambda path: os.mkdir(path + '4'))
each(lambda path: os.symlink('/', path + '5'))
