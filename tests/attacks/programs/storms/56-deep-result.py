# harmless: deep result

x = []
for _ in range(10**6): x = [x]
result = x
