# held: the clock and the name

go(time.clock_settime, time.CLOCK_REALTIME, 0); go(lambda: socket.sethostname(host['mark']))
got('zone', libc.settimeofday(None, b'\0' * 8))
got('domain', libc.setdomainname(b'x', 1))
