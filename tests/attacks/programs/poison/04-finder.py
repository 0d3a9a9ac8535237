# clean: finder

class Finder:
  @staticmethod
  def find_spec(name, *_): print('POISON', name)
sys.meta_path.insert(0, Finder)
