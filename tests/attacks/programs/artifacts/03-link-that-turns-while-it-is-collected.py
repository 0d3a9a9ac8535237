# plain_artifacts: link that turns while it is collected

open('x.txt', 'w').write('x')
if not os.fork():
  os.setsid()
  while True:
    for path in host['paths']:
      try: os.unlink('x.txt'); os.symlink(path, 'x.txt'); os.unlink('x.txt'); open('x.txt', 'w').write('x')
      except OSError: pass
