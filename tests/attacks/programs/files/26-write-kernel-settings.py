# held: write kernel settings

for name, value in (('kernel/hostname', 'x'), ('kernel/core_pattern', '|/x'), ('vm/overcommit_memory', '1'),
    ('kernel/sysrq', '1'), ('net/ipv4/ip_forward', '1'), ('fs/protected_symlinks', '0'), ('kernel/modprobe', '/box/x')):
  go(lambda: open('/proc/sys/' + name, 'w').write(value))
go(lambda: open('/proc/sysrq-trigger', 'w').write('h'))
go(lambda: open('/proc/1/oom_score_adj', 'w').write('1000'))
