# bounded: disk everywhere

for place, folders, _ in os.walk('/'):
  if place in ('/proc', '/sys') or place.startswith(('/usr', sys.base_prefix, sys.prefix)):
    folders.clear(); continue
  for n in range(120):
    try:
      with open(f'{place}/{n}', 'wb') as file: file.write(b'x' * (8 << 20))
    except OSError: break
time.sleep(99)
