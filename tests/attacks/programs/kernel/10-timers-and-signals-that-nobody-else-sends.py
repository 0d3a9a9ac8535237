# held: timers and signals that nobody else sends

got('timer', libc.syscall(host['calls']['timer_create'], 1, None, ctypes.byref(ctypes.c_int())))
import fcntl
pair = socket.socketpair()
for command, value in ((8, host['pid']), (8, -host['pid']), (10, 18), (15, 0)):
  go(lambda: (fcntl.fcntl(pair[0], command, value), granted))
for request in (0x8901, 0x8902): go(lambda: (fcntl.ioctl(pair[0], request, struct.pack('i', host['pid'])), granted))
got('clone', libc.syscall(host['calls']['clone'], 18, 0, 0, 0, 0))
got('clone as a sibling', libc.syscall(host['calls']['clone'], 0x8000 | 17, 0, 0, 0, 0))
got('be given orphans', libc.prctl(36, 1, 0, 0, 0))
