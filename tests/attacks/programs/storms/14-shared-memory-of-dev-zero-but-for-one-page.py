# counted: shared memory of /dev/zero but for one page

size, zero = 64 << 20, os.open('/dev/zero', os.O_RDWR)
for _ in range(18):
  place = libc.mmap(None, size, 3, 1, zero, 0)
  if place in (None, 2**64 - 1): break
  ctypes.memset(place, 1, size); libc.munmap(place + 4096, size - 4096)
time.sleep(99)
