# limited_disk: disk in files that are on their way

pairs = []
for n in range(40):
  file = os.open(f'{n}', 66); os.unlink(f'{n}')
  try: os.write(file, b'x' * (7 << 20))
  except OSError: break
  pairs.append(socket.socketpair())
  try: socket.send_fds(pairs[-1][0], [b'x'], [file])
  except OSError: continue
  os.close(file)
time.sleep(99)
