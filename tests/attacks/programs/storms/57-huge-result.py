# harmless: huge result
result = 'x' * (64 << 20)