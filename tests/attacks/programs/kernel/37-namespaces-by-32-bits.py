# held: namespaces by 32 bits

place = libc.mmap(None, 4096, 7, 0x62, -1, 0)
code = b'\x53\xb8\x36\x01\0\0\xbb\0\0\0\x10\xcd\x80\x5b\xc3'
ctypes.memmove(place, code, len(code))
if host['calls']['iopl'] > 0: print(granted if ctypes.CFUNCTYPE(ctypes.c_int)(place)() == 0 else 'no')
