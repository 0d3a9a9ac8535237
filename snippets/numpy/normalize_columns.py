"""Scale each column of a data matrix to the range 0 to 1 (min-max normalization) or to mean 0."""

import numpy as np

data = np.array([[10.0, 200.0], [20.0, 400.0], [30.0, 600.0]])

low, high = data.min(axis=0), data.max(axis=0)
scaled = (data - low) / (high - low)
standard = (data - data.mean(axis=0)) / data.std(axis=0)
print("Scaled to 0..1:")
print(scaled)
print("Mean 0 and standard deviation 1:")
print(standard.round(3))
