# harmless: signal a thread
for pid in numbers: libc.syscall(host['calls']['tgkill'], pid, pid, 9)