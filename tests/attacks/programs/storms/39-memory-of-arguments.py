# bounded: memory of arguments

more = ['x' * 100000] * 17
for _ in range(20):
  if not os.fork():
    while True:
      if not os.fork(): os.execv(sys.executable, [sys.executable, '-c', 'pass', *more])
      os.wait()
time.sleep(99)
