# plain_artifacts: file that grows while it is collected

open('x.csv', 'w').write('x')
if not os.fork():
  os.setsid()
  while True:
    try: open('x.csv', 'a').write('x' * 99999)
    except OSError: pass
