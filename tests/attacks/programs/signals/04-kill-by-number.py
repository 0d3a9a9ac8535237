# held: kill by number

for pid in numbers:
  if pid != 1: go(os.kill, pid, 9)
