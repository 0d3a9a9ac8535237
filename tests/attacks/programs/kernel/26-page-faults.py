# held: page faults

call('userfaultfd', 0); call('userfaultfd', 1); go(lambda: os.open('/dev/userfaultfd', os.O_RDWR) and granted)
