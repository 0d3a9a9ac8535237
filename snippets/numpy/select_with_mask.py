"""Select and replace elements of a numpy array by a condition, with a boolean mask and where.

My thermometer readings contain negative glitches; how do I set them to zero in an array?
How do I keep only array values above zero?
How many days were below freezing, and at which positions in the measurement array?
How do I overwrite all pixels darker than a limit without a loop?
Numpy boolean indexing where flatnonzero example?
"""

import numpy as np

readings = np.array([3, -1, 7, -5, 10])

print("Positive readings:", readings[readings > 0].tolist())
print("Number of negative readings:", int((readings < 0).sum()))
print("Positions of negative readings:", np.flatnonzero(readings < 0).tolist())
print("Negative replaced by zero:", np.where(readings < 0, 0, readings).tolist())
