# clean: environment

os.environ.clear(); os.environ.update(PATH='/x', PYTHONSTARTUP='/tmp/x', LD_PRELOAD='/tmp/x')
os.environ['POISON'] = '1'
