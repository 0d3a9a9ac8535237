# stopped: output into every descriptor

for n in range(1024):
  if not os.fork():
    while True: os.write(n, b'x' * 60000)
  if n > 20: time.sleep(99)
