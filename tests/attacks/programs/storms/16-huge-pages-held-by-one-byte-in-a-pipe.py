# counted: huge pages held by one byte in a pipe

class Piece(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('length', ctypes.c_size_t)]
two, size, pipes = 2 << 20, 64 << 20, []
place = -(-libc.mmap(None, size + two, 3, 0x22, -1, 0) // two) * two
libc.madvise(place, size, 14)
for _ in range(18):
  for n in range(32):
    ctypes.memset(place + n * two, 1, 1)
    if n % 16 == 0: pipes.append(os.pipe())
    if libc.vmsplice(pipes[-1][1], ctypes.byref(Piece(place + n * two, 1)), ctypes.c_size_t(1), 0) < 0:
      os._exit(1)
  libc.madvise(place, size, 4)
time.sleep(99)
