# held: kill a group

for pid in numbers:
  if pid != 1: go(os.killpg, pid, 9)
