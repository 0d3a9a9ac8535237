# bounded: buffers of pipes

import fcntl
def fill():
  while True:
    try:
      r, w = os.pipe(); os.set_blocking(w, False)
      try: fcntl.fcntl(w, 1031, 1 << 20)
      except OSError: pass
      while True: os.write(w, b'x' * 4096)
    except BlockingIOError: pass
    except OSError: time.sleep(99)
for _ in range(20):
  if not os.fork(): fill()
time.sleep(99)
