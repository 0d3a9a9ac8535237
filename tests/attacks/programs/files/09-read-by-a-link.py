# held: read by a link

each(lambda path: (os.symlink(path, 'link' + str(hash(path))), peek('link' + str(hash(path)))))
