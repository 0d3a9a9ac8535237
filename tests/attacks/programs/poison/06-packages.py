# clean: packages

for place in [p for p in sys.path if os.path.isdir(p)]:
  for name in ('x.pth', 'sitecustomize.py', 'usercustomize.py'):
    go(lambda: open(os.path.join(place, name), 'w').write('print("POISON")'))
home = os.path.expanduser('~/.local/lib/python%d.%d/site-packages' % sys.version_info[:2])
go(os.makedirs, home); go(lambda: open(home + '/usercustomize.py', 'w').write('print("POISON")'))
