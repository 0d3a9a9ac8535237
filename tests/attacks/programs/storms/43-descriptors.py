# bounded: descriptors

def take():
  try:
    while True: os.dup(0); os.eventfd(0); os.pidfd_open(os.getpid())
  except OSError: time.sleep(99)
for _ in range(20):
  if not os.fork(): take()
time.sleep(99)
