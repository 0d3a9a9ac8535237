# clean: mode of the working directory
for place in ('/box', '/tmp', '/dev/shm'): go(os.chmod, place, 0)