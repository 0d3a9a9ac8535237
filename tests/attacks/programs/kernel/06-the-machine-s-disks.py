# held: the machine's disks
got('sync', libc.syscall(host['calls']['syncfs'], 1))