# held: keys

key = call('add_key', b'user', host['mark'].encode(), b'x', 1, -4); call('keyctl', 0, -4, 1)
call('keyctl', 1, 0)
call('keyctl', 11, -5, ctypes.create_string_buffer(99), 99)
