# never_came_back: threads

while True:
  try: threading.Thread(target=time.sleep, args=(99,)).start()
  except RuntimeError: pass
