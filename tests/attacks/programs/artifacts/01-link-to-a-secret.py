# plain_artifacts: link to a secret

each(lambda path: os.symlink(path, 'a%d.txt' % abs(hash(path)))); os.symlink('/etc/passwd', 'b.txt')
