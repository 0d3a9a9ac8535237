# clean: a crash half way
open('/tmp/left', 'w'); sys.path.clear(); os.kill(os.getpid(), 11)