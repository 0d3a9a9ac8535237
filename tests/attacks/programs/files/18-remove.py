# held: remove
import shutil; each(os.unlink); each(lambda path: shutil.rmtree(os.path.dirname(path)))