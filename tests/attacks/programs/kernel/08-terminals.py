# held: terminals
for n in range(3): go(lambda: (os.open('/dev/ptmx', n), granted))