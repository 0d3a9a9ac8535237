# clean: working directory that is gone
os.mkdir('x'); os.chdir('x'); os.rmdir('/box/x'); go(os.rmdir, '/box')