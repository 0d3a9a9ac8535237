# clean: exit handlers

import atexit
atexit.register(lambda: open('/tmp/left', 'w').write('x'))
