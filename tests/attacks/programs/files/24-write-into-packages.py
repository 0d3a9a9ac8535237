# held: write into packages

name = '/x-left-' + host['mark']
for place in [*filter(os.path.isdir, sys.path), '/usr/lib', '/etc', '/run', '/', '/dev', '/proc']:
  go(lambda: (open(place + name, 'w').close(), place.startswith(('/usr', sys.prefix, sys.base_prefix)) and granted))
for module in (json, os, threading): go(lambda: (open(module.__file__, 'a').close(), granted))
