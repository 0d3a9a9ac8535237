# clean: working directory and mask
os.chdir('/tmp'); os.umask(0o777); os.rmdir('/box') if 0 else None