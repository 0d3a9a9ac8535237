# limited_disk: disk in files that were unlinked, of many

for _ in range(10):
  if not os.fork():
    for n in range(99):
      name = f'{os.getpid()}-{n}'; file = open(name, 'wb'); globals()[name] = file; os.unlink(name)
      try: file.write(b'x' * (7 << 20)); file.flush()
      except OSError: break
    time.sleep(99)
time.sleep(99)
