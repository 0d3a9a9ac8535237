# ended: a whole frame and a kill
shout(framed()); os.kill(os.getpid(), 9)