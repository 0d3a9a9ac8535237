# harmless: signal by ownership of a pipe

import fcntl
read, write = os.pipe()
for pid in numbers:
  go(fcntl.fcntl, read, 8, pid); go(fcntl.fcntl, read, 10, 9); go(fcntl.fcntl, read, 4, 0o20000)
  os.write(write, b'x')
