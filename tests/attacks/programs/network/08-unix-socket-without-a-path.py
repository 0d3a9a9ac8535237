# held: unix socket without a path
go(socket.socket(socket.AF_UNIX).connect, '\0' + host['mark'])