# held: huge pages

def huge(): return ctypes.memset(libc.mmap(None, 1 << 21, 3, 0x40022, -1, 0), 1, 1 << 21)
if libc.mmap(None, 1 << 21, 3, 0x40022, -1, 0) not in (None, 2**64 - 1): print(granted)
