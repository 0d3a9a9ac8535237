# held: read by a library

import numpy, pandas; each(pandas.read_csv); each(lambda p: numpy.fromfile(p, 'S1').tobytes())
