# held: flags of files

import fcntl
for path in (os.__file__, json.__file__, sys.executable, *host['paths']):
  for request in (0x40086602, 0x40087602, 0x40046602, 0x401C5820, 0x40806685, 0x5000940E, 0x40049409):
    go(lambda: (fcntl.ioctl(os.open(path, 0), request, struct.pack('l', 0x40) + b'\0' * 120), granted))
