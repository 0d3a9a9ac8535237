# bounded: System V memory

import ctypes
for _ in range(12):
  number = libc.shmget(0, 100 << 20, 0o1600)
  if number >= 0: libc.shmat.restype = ctypes.c_void_p; ctypes.memset(libc.shmat(number, None, 0), 1, 100 << 20)
