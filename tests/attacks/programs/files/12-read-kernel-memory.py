# held: read kernel memory

for path in ('/proc/kcore', '/proc/kmsg', '/proc/kallsyms', '/proc/1/mem', '/proc/vmallocinfo', '/sys/kernel/debug'):
  go(lambda: (b' T ' in peek(path) and b'0000000000000000 T' not in peek(path) or 'kcore' in path) and granted)
