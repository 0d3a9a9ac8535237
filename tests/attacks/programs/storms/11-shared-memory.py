# counted: shared memory

keep = [mmap.mmap(-1, 100 << 20) for _ in range(12)]
for m in keep: m.write(b'x' * (100 << 20))
time.sleep(99)
