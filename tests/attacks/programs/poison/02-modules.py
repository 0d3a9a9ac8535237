# clean: modules

import random, math
json.dumps = json.loads = json.JSONEncoder = os.write = time.monotonic = None; math.pi = 3
for name in list(sys.modules):
  if name != '__main__': sys.modules[name] = None
