# clean: builtins

import builtins
for name in ('print', 'len', 'open', 'repr', 'eval', 'compile', '__import__', 'isinstance'):
  setattr(builtins, name, None)
