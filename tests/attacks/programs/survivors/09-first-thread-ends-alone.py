# stopped: first thread ends alone

def stay():
  while True: time.sleep(0.1)
threading.Thread(target=stay).start(); libc.syscall(60 if host['calls']['iopl'] > 0 else 93, 0)
