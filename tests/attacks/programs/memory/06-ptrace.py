# held: ptrace

for pid in numbers:
  for request in (16, 0x4206): call('ptrace', request, pid, 0, 0)
