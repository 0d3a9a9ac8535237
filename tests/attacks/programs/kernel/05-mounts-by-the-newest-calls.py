# held: mounts by the newest calls

for number in (428, 429, 430, 432, 433, 442, 457, 458, 467): got(str(number), libc.syscall(number, -100, b'/', 0, 0, 0, 0))
