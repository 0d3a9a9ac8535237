# held: tcp
for port in host['ports']: go(socket.create_connection, ('127.0.0.1', port), 0.3)