# held: lock what others use

import fcntl
each(lambda path: fcntl.flock(os.open(path, 0), fcntl.LOCK_EX))
each(lambda p: fcntl.fcntl(os.open(p, 0), 1024, 1))
