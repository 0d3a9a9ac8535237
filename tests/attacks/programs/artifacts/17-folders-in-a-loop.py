# plain_artifacts: folders in a loop

os.makedirs('a/b'); os.symlink('..', 'a/b/c'); os.symlink('.', 'd'); os.symlink('e', 'e')
