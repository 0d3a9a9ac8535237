# counted: memory at once
keep = bytearray(1 << 40)