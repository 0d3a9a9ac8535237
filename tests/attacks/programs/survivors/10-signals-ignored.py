# stopped: signals ignored

for n in range(1, 65):
  try: signal.signal(n, signal.SIG_IGN)
  except (OSError, ValueError): pass
while True: time.sleep(9)
