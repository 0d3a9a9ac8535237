# held: performance events

for pid in (0, -1, 1):
  call('perf_event_open', struct.pack('IIQ', 1, 112, 0).ljust(112, b'\0'), pid, 0 if pid == -1 else -1, -1, 0)
