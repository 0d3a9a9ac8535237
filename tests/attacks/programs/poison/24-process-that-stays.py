# clean: process that stays

if not os.fork():
  os.setsid()
  for n in range(1024):
    try: os.close(n)
    except OSError: pass
  while True: time.sleep(1)
