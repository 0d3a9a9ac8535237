# clean: garbage collector and hooks

import gc; gc.disable(); gc.freeze(); sys.settrace(lambda *_: None); sys.setprofile(lambda *_: None)
sys.setrecursionlimit(77)
sys.excepthook = sys.displayhook = sys.unraisablehook = None
sys.addaudithook(lambda *_: print('POISON') if 0 else None)
