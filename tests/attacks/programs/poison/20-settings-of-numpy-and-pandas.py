# clean: settings of numpy and pandas

import numpy, pandas
numpy.set_printoptions(precision=1); pandas.set_option('display.max_rows', 1)
pandas.DataFrame.sum = numpy.sum = None
