# held: rename
each(lambda path: os.rename(path, path + '2')); each(lambda path: os.rename(path, '/box/x'))