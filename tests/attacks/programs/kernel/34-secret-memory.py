# held: secret memory
call('memfd_secret', 0); call('memfd_create', b'x', 0)