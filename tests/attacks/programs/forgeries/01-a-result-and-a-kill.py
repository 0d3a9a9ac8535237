# ended: a result and a kill
shout(forged + b'\n'); os.kill(os.getpid(), 9)