# plain_artifacts: device

go(os.mknod, 'zero.png', 0o20666, os.makedev(1, 5)); os.symlink('/dev/zero', 'zero.csv')
