# stopped: disk
open('x', 'wb').write(b'x' * (1 << 30))