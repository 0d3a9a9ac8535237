# stopped: destructor

class X:
  def __del__(self):
    while True: pass
x = X(); del x
