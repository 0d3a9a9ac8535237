# held: io_uring
call('io_uring_setup', 8, b'\0' * 120)