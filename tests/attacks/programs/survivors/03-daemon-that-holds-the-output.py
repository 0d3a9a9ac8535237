# harmless: daemon that holds the output

if not os.fork(): os.setsid(); time.sleep(99)
print(1)
