# held: read through an inherited descriptor

for n in range(1024):
  try: print(os.pread(n, 4096, 0))
  except OSError: pass
