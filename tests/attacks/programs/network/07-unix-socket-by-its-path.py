# held: unix socket by its path

for end in ('', '-datagrams'):
  for root in ('', '/proc/1/root', f'/proc/{os.getppid()}/root'):
    go(lambda: socket.socket(socket.AF_UNIX).connect(root + host['socket'] + end))
    go(lambda: socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'x', root + host['socket'] + end))
