# harmless: an error that lies

class E(Exception):
  __class__ = property(lambda self: 1 / 0)
  __str__ = __repr__ = lambda self: chr(0xd800) * 9
  __traceback__ = property(lambda self: 5)
E.__name__ = 'x' * 99999
raise E
