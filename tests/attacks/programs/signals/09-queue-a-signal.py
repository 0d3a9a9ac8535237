# harmless: queue a signal

info = struct.pack('iiiiI', 19, 0, -1, 0, 0).ljust(128, b'\0')
for pid in numbers: libc.syscall(host['calls']['rt_sigqueueinfo'], pid, 19, info)
