# bounded: a frame without end
while True: shout(b'x' * 60000, range(3, 256))