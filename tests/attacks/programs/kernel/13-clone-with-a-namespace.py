# held: clone with a namespace

for flag in (0x10000000, 0x20000, 0x40000000):
  pid = libc.syscall(host['calls']['clone'], flag | 17, 0, 0, 0, 0)
  if pid == 0: os._exit(0)
  got('clone', pid)
