# held: slow others down

for pid in numbers:
  if pid != 1: go(os.sched_setaffinity, pid, {0}); go(os.setpriority, os.PRIO_PROCESS, pid, 19)
  go(resource.prlimit, pid, resource.RLIMIT_NOFILE, (3, 3))
