# held: read through a root of /proc

for pid in everyone:
  for way in ('root', 'cwd', 'task/%s/root' % pid): each(lambda path: peek(f'/proc/{pid}/{way}{path}'))
