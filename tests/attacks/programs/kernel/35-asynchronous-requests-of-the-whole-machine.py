# held: asynchronous requests of the whole machine

for _ in range(64): call('io_setup', 1000, ctypes.byref(ctypes.c_ulong(0)))
