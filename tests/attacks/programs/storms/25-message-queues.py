# bounded: message queues

class Size(ctypes.Structure):
  _fields_ = [('flags', ctypes.c_long), ('most', ctypes.c_long), ('size', ctypes.c_long), ('now', ctypes.c_long)]
for n in range(9999):
  queue = libc.mq_open(b'/q%d' % n, 0o102, 0o600, ctypes.byref(Size(0, 10, 8192, 0)))
  if queue < 0: break
  for _ in range(10): libc.mq_send(queue, b'x' * 8192, 8192, 0)
print(n)
