# held: attributes of files
each(lambda path: (os.getxattr(path, 'user.secret'), granted))