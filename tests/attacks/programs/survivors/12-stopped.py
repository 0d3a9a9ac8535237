# stopped: stopped

if not os.fork(): os.kill(os.getpid(), 19)
os.kill(os.getpid(), 19)
