# held: read through descriptors of /proc

for pid in everyone:
  for way in glob.glob(f'/proc/{pid}/fd/*') + glob.glob(f'/proc/{pid}/map_files/*'):
    go(peek, way)
    each(lambda path: peek(way + '/..' + path))
