# counted: memory of grandchildren in sessions of their own

for n in range(6):
  if not os.fork():
    os.setsid()
    if os.fork(): os._exit(0)
    keep = b'x' * (200 << 20); time.sleep(99)
time.sleep(99)
