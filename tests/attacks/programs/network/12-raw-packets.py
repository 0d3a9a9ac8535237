# held: raw packets

for family, protocol in ((2, 1), (2, 255), (10, 58), (17, 0x300), (16, 0), (16, 9), (16, 15)):
  go(lambda: (socket.socket(family, socket.SOCK_RAW, protocol), granted))
