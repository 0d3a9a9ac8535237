# stopped: processors with all signals blocked

signal.pthread_sigmask(0, range(1, 65))
while True: pass
