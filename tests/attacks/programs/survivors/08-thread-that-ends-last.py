# harmless: thread that ends last

def stay():
  while True: time.sleep(0.1)
threading.Thread(target=stay, daemon=True).start()
