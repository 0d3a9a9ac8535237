# stopped: output
while True: print('x' * 60000)