# clean: left files

for place in ('/box', '/tmp', '/dev/shm', '/run', '/var/tmp', '/dev', '/dev/mqueue', '/'):
  go(lambda: open(place + '/left', 'w').write('x'))
