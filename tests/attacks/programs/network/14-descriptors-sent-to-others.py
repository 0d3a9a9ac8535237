# held: descriptors sent to others

a, b = socket.socketpair()
socket.send_fds(a, [b'x'], [os.open('.', 0)]); fds = socket.recv_fds(b, 1, 9)[1]
each(lambda path: os.open('../' * 9 + path[1:], 0, dir_fd=fds[0]) and granted)
go(lambda: socket.send_fds(socket.socket(socket.AF_UNIX), [b'x'], fds, 0, host['socket']))
