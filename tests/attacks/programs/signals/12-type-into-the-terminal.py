# held: type into the terminal

import fcntl
for path in ('/dev/tty', '/dev/console', '/dev/tty0', '/proc/self/fd/0'):
  go(lambda: (fcntl.ioctl(os.open(path, os.O_RDWR | os.O_NONBLOCK), 0x5412, b'x'), granted))
