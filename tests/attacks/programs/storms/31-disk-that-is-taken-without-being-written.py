# little_disk: disk that is taken without being written

file = os.open('x', 66)
for n in range(400): libc.fallocate(file, 0, ctypes.c_long(n << 23), ctypes.c_long(8 << 20))
for n in range(400): libc.fallocate(os.open(f'y{n}', 66), 1, ctypes.c_long(0), ctypes.c_long(8 << 20))
time.sleep(99)
