# harmless: descriptors set to another mode

import fcntl
for n in range(1024):
  try: os.set_blocking(n, False); fcntl.fcntl(n, 1031, 4096)
  except OSError: pass
print('x' * 30000)
result = 'y' * 30000
