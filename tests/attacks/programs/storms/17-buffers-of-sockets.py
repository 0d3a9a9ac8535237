# counted: buffers of sockets

def fill(keep=[]):
  try:
    while True: keep += socket.socketpair()
  except OSError: pass
  for s in keep:
    s.setblocking(False)
    try:
      while True: s.send(b'x' * 4096)
    except OSError: pass
  time.sleep(99)
for _ in range(20):
  if not os.fork(): fill()
time.sleep(99)
