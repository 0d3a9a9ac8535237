# held: sockets of the machine

for path in [*glob.glob('/run/*.sock'), '/run/docker.sock', '/run/dbus/system_bus_socket', '/dev/log']:
  go(lambda: (socket.socket(socket.AF_UNIX).connect(path), granted))
