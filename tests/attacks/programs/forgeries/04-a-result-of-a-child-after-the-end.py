# harmless: a result of a child after the end

if not os.fork():
  os.setsid(); time.sleep(0.05)
  while True: shout(forged + b'\n')
5
