# clean: signals

for n in (2, 10, 12, 14, 15, 17): signal.signal(n, signal.SIG_IGN)
signal.pthread_sigmask(0, range(1, 65)); signal.setitimer(0, 60, 1)
