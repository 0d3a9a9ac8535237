# harmless: daemon

if not os.fork():
  os.setsid()
  if os.fork(): os._exit(0)
  for n in range(3): os.close(n)
  time.sleep(99)
print(1)
