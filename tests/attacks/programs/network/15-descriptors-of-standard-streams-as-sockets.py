# harmless: descriptors of standard streams as sockets

for n in range(1024):
  try: s = socket.socket(fileno=os.dup(n))
  except OSError: continue
  go(s.getpeername); go(s.send, b'junk\n'); go(lambda: socket.send_fds(s, [b'x'], [0]))
