# bounded: locks of files

import fcntl
for _ in range(4):
  if not os.fork():
    files = [os.open(f'f{os.getpid()}-{n}', 66) for n in range(20)]; n = 0
    while True:
      for f in files: fcntl.fcntl(f, fcntl.F_SETLK, struct.pack('hhqqi', 1, 0, n * 2, 1, 0))
      n += 1
time.sleep(99)
