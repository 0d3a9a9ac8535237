# held: memory by process_vm_readv

class Piece(ctypes.Structure): _fields_ = [('base', ctypes.c_void_p), ('length', ctypes.c_size_t)]
text = ctypes.create_string_buffer(64)
for pid in numbers:
  libc.process_vm_readv(pid, ctypes.byref(Piece(ctypes.addressof(text), 64)), ctypes.c_ulong(1),
    ctypes.byref(Piece(host['address'], 64)), ctypes.c_ulong(1), ctypes.c_ulong(0))
  print(text.raw)
