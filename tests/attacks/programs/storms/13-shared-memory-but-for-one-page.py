# bounded: shared memory but for one page

size = 64 << 20
for _ in range(18):
  place = libc.mmap(None, size, 3, 0x21, -1, 0)
  if place in (None, 2**64 - 1): break
  ctypes.memset(place, 1, size); libc.munmap(place + 4096, size - 4096)
time.sleep(99)
