# bounded: pieces of address space that the watcher must read

place = libc.mmap(None, 65000 * 4096, 0, 0x22, -1, 0)
for n in range(0, 65000, 2): libc.mprotect(place + n * 4096, 4096, 1)
for _ in range(20):
  if not os.fork(): break
while True: pass
