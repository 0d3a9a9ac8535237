# held: change the mode
each(os.chmod, 0o777); each(lambda path: os.chmod(os.path.dirname(path), 0))