# never_came_back: forks that end at once

while True:
  try:
    if not os.fork(): os._exit(0)
  except OSError: pass
