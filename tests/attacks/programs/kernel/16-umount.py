# held: umount

for path in (b'/proc', b'/tmp', b'/box', b'/dev/shm', b'/'): got('umount', libc.umount2(path, 2))
