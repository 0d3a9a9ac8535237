# stopped: output of children

for _ in range(8): os.fork()
while True: os.write(1, b'x' * 60000)
