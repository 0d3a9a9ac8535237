# honest: frames that announce too much

shout(framed(sizes=[1 << 40])); shout(framed(sizes=[0, 1 << 30])); shout(struct.pack('!I', 1 << 31))
