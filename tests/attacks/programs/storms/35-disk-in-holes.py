# bounded: disk in holes

for place in ('/box', '/tmp'):
  go(os.truncate, open(place + '/x', 'wb').name, 1 << 40)
  go(os.posix_fallocate, os.open(place + '/y', 66), 0, 1 << 36)
