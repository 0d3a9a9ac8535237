# plain_artifacts: hard link to a file of the machine

each(lambda path: os.link(path, 'x.txt')); go(os.link, os.path.realpath(sys.executable), 'python.txt')
go(os.link, '/proc/self/environ', 'e.txt')
