# held: write through a root of /proc

for pid in everyone:
  each(lambda path: open(f'/proc/{pid}/root{path}', 'w')); each(lambda p: os.chmod(f'/proc/{pid}/root{p}', 0))
