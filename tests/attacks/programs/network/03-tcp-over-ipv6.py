# held: tcp over IPv6
for port in host['ports']: go(socket.create_connection, ('::1', port), 0.3)