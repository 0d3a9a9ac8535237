"""Scale each column of a data matrix to the range 0 to 1 (min-max normalization) or to mean 0.

Salary and age have very different ranges; how do I bring both to between 0 and 1?
How do I rescale every feature before machine learning, so none dominates?
How can I give each measurement column mean zero and unit spread?
How do I compare athletes' jump and sprint results on a common scale in an array?
Numpy min max scaling axis 0 standardize features?
"""

import numpy as np

data = np.array([[10.0, 200.0], [20.0, 400.0], [30.0, 600.0]])

low, high = data.min(axis=0), data.max(axis=0)
scaled = (data - low) / (high - low)
standard = (data - data.mean(axis=0)) / data.std(axis=0)
print("Scaled to 0..1:")
print(scaled)
print("Mean 0 and standard deviation 1:")
print(standard.round(3))
