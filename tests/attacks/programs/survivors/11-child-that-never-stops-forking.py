# never_came_back: child that never stops forking

while True:
  if os.fork(): os._exit(0)
