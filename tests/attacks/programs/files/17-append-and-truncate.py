# held: append and truncate
each(os.truncate, 0); each(lambda path: open(path, 'a').write('x'))