# bounded: timers

def start():
  for n in range(10**6):
    if libc.timer_create(1, None, ctypes.byref(ctypes.c_void_p())) < 0: break
  time.sleep(99)
for _ in range(9):
  if not os.fork(): start()
time.sleep(99)
