# held: change the owner
each(os.chown, 1000, 1000); each(os.lchown, os.getuid(), -1)