# clean: compiled modules

import csv
for module in (csv, json, threading):
  go(lambda: open(module.__cached__, 'r+b').write(b'x')); go(os.unlink, module.__cached__)
