# held: bpf

call('bpf', 0, struct.pack('IIII', 2, 4, 4, 1).ljust(128, b'\0'), 128); call('bpf', 5, b'\0' * 128, 128)
