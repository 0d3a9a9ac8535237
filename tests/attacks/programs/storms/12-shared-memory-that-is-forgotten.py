# counted: shared memory that is forgotten

for _ in range(12):
  m = mmap.mmap(-1, 100 << 20); m.write(b'x' * (100 << 20)); m.madvise(mmap.MADV_DONTNEED)
  go(lambda: globals().setdefault('m%d' % _, m))
time.sleep(99)
