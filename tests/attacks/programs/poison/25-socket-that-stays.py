# clean: socket that stays

s = socket.socket(socket.AF_UNIX); s.bind('\0left'); s.listen()
if not os.fork(): os.setsid(); time.sleep(99)
