# harmless: deep error

error = None
for n in range(10**5): new = ValueError(n); new.__cause__ = error; error = new
raise error
