# held: descriptors of others

for pid in numbers:
  handle = libc.syscall(434, pid, 0)
  for n in range(20): call('pidfd_getfd', handle, n, 0)
