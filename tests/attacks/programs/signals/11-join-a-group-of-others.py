# held: join a group of others
for pid in numbers: go(os.setpgid, pid, 0); go(os.setpgid, 0, pid)