# held: system calls of x32

for path in host['paths']:
  if not os.fork():
    n = libc.syscall(0x40000002, path.encode(), 0, 0); print(os.read(n, 99), flush=True); os._exit(0)
  os.wait()
for number in (0x40000000 + 272, 0x40000000 + 101):
  if not os.fork(): got('x32', libc.syscall(number, 0x10000000, 0)); os._exit(0)
  os.wait()
