# held: stop every number

for pid in range(2, 40000):
  if pid != os.getpid():
    try: os.kill(pid, 19)
    except OSError: pass
