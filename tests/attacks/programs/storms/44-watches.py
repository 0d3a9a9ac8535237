# bounded: watches

import select
def watch():
  n = libc.inotify_init()
  for place, _, names in os.walk('/usr'):
    for name in names: libc.inotify_add_watch(n, os.path.join(place, name).encode(), 2)
for _ in range(4):
  if not os.fork(): watch(); time.sleep(99)
time.sleep(99)
