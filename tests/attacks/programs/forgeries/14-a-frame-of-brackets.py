# honest: a frame of brackets
data = b'[' * 100000; shout(struct.pack('!I', len(data)) + data)