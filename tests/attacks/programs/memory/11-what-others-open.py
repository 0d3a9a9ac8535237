# held: what others open

listener = libc.inotify_init()
for path in (sys.base_prefix, os.path.dirname(json.__file__), '/usr/lib', '/proc'):
  if libc.inotify_add_watch(listener, path.encode(), 0x21) > 0: print(path, granted)
