# bounded: polls of polls

import select
def nest():
  all = [select.epoll() for _ in range(100)]
  for a in all:
    for b in all:
      try: a.register(b, 1)
      except OSError: pass
  time.sleep(99)
for _ in range(9):
  if not os.fork(): nest()
time.sleep(99)
