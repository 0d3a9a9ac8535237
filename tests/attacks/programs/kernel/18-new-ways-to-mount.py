# held: new ways to mount

call('open_tree', -100, b'/', 1); call('fsopen', b'tmpfs', 0)
call('mount_setattr', -100, b'/', 0x8000, struct.pack('4Q', 0, 1, 0, 0), 32)
for number in (429, 431, 432, 433, 467): got(str(number), libc.syscall(number, -100, b'/', 1, 0, 0))
