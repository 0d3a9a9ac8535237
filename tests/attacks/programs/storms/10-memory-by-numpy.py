# counted: memory by numpy

import numpy
keep = []
while True: keep.append(numpy.ones(1 << 20))
