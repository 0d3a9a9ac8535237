# held: slow the watcher down

before = os.getpriority(os.PRIO_PROCESS, 1)
go(os.setpriority, os.PRIO_USER, 0, 19); go(os.setpriority, os.PRIO_PROCESS, 1, 19)
go(os.setpriority, os.PRIO_PGRP, 1, 19)
print(granted if os.getpriority(os.PRIO_PROCESS, 1) != before else 'no')
