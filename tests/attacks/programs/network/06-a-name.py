# held: a name
go(socket.getaddrinfo, 'example.org', 80); go(socket.gethostbyname, 'example.org')