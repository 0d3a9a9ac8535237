# harmless: descriptors replaced

read, write = os.pipe()
for n in range(1024):
  if n not in (read, write): os.dup2(write, n)
