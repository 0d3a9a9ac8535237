# stopped: processors

for _ in range(20):
  if not os.fork(): break
while True: pass
