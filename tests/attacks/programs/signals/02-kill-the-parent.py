# harmless: kill the parent
for n in (19, 15, 2, 9): go(os.kill, os.getppid() or 1, n)