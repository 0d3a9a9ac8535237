# bounded: buffers of sockets in flight

end, far = socket.socketpair()
while True:
  a, b = socket.socketpair(); a.setblocking(False)
  try:
    while True: a.send(b'x' * 4096)
  except OSError: pass
  end.setblocking(False)
  try: socket.send_fds(end, [b'x'], [a.fileno(), b.fileno()])
  except OSError: time.sleep(99)
