# held: moving others' pages

for pid in numbers: go(lambda: got('pages', libc.syscall(279, pid, 1, b' ' * 8, 0, b' ' * 8, 0)) )
