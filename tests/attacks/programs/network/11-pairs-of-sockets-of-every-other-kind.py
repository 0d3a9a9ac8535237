# held: pairs of sockets of every other kind

pair = (ctypes.c_int * 2)()
for family in range(2, 46):
  for kind in (1, 2, 5):
    libc.socketpair(family, kind, 0, pair)
    if ctypes.get_errno() != 1: print(family, kind, os.strerror(ctypes.get_errno()), granted)
