# held: a terminal's discipline

import fcntl
for n in (1, 2, 3, 13, 15, 17, 21, 22, 27):
  go(lambda: (fcntl.ioctl(os.openpty()[1], 0x5423, struct.pack('i', n)), granted))
