# held: System V queues by their number

text = ctypes.create_string_buffer(200)
for number in range(max(0, host['queues'][2] - 2), host['queues'][2] + 3):
  if libc.msgrcv(number, text, 100, 0, 0o24000) >= 0: print(text.raw[8:])
  if libc.msgrcv(number, text, 100, 0, 0o4000) >= 0: print(text.raw[8:])
  libc.msgsnd(number, struct.pack('l', 1) + b'x', 1, 0o4000); libc.msgctl(number, 0, None)
