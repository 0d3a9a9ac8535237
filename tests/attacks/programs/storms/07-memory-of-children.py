# counted: memory of children

for n in range(6):
  if not os.fork(): keep = b'x' * (200 << 20); time.sleep(99)
time.sleep(99)
