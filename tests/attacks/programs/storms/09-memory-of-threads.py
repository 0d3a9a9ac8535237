# stopped: memory of threads

def grow(): keep = b'x' * (64 << 20); time.sleep(99)
for n in range(20): threading.Thread(target=grow).start()
