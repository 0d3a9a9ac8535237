# held: sockets of a pair

for kind in (1, 2, 3, 4, 5, 2 | 0o4000, 3 | 0o2000000):
  for path in (host['socket'], host['socket'] + '-datagrams', '\0' + host['mark']):
    go(lambda: socket.socketpair(1, kind)[0].sendto(b'x', path))
    go(lambda: socket.socketpair(1, kind)[0].sendmsg([b'x'], [], 0, path))
    go(lambda: socket.socketpair(1, kind)[0].connect(path))
