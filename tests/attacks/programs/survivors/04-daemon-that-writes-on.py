# harmless: daemon that writes on

if not os.fork():
  os.setsid()
  while True: os.write(1, b'x'); time.sleep(0.01)
print(1)
