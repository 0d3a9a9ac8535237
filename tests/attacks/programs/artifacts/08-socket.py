# plain_artifacts: socket
s = socket.socket(socket.AF_UNIX); s.bind('x.csv'); s.listen()