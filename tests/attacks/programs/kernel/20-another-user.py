# held: another user

go(lambda: os.setresuid(0, 0, 0) or granted); go(lambda: os.setgid(0) or granted)
go(lambda: os.setgroups([0]) or granted)
