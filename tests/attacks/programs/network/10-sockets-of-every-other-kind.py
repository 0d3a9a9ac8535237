# held: sockets of every other kind

for family in range(2, 46):
  for kind in (1, 2, 3, 5, 10):
    if libc.socket(family, kind, 0) >= 0: print(family, kind, granted)
