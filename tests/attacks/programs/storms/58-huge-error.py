# harmless: huge error
raise ValueError('x' * (64 << 20))