# held: clone3 with a namespace

for flag in (0x10000000, 0x20000, 0x80):
  pid = libc.syscall(435, struct.pack('8Q', flag, 0, 0, 0, 17, 0, 0, 0), 64)
  if pid == 0: os._exit(0)
  got('clone3', pid)
