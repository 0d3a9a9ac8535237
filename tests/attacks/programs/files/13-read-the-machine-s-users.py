# held: read the machine's users

go(lambda: [line for line in open('/etc/passwd') if line.startswith('root')] and granted)
for name in ('shadow', 'machine-id', 'ssh/sshd_config', 'fstab', 'sudoers'):
  go(lambda: peek('/etc/' + name) and granted)
