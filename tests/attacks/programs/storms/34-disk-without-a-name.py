# bounded: disk without a name

keep = []
for place in ('/box', '/tmp', '/dev/shm', '/dev', '/run', '/'):
  for _ in range(99):
    try: keep.append(os.open(place, os.O_TMPFILE | os.O_RDWR)); os.write(keep[-1], b'x' * (8 << 20))
    except OSError: break
