# limited_disk: disk in files that are mapped alone

for n in range(40):
  file = os.open(f'{n}', 66); os.unlink(f'{n}')
  try: os.write(file, b'x' * (7 << 20))
  except OSError: break
  libc.mmap(None, 4096, 1, 1, file, 0); os.close(file)
time.sleep(99)
