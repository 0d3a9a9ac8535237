# bounded: signals that wait

signal.pthread_sigmask(0, range(34, 64)); info = struct.pack('iiiiI', 34, 0, -1, 0, 0).ljust(128, b'\0')
for _ in range(10**6):
  if libc.syscall(host['calls']['rt_sigqueueinfo'], os.getpid(), 34, info) < 0: break
time.sleep(99)
