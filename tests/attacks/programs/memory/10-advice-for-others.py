# held: advice for others
call('process_madvise', libc.syscall(434, 1, 0), b' ' * 16, 1, 4, 0)