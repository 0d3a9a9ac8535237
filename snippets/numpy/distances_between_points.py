"""Compute the distance between every pair of points and find the two closest points.

Which two of my garden trees stand nearest to each other, given their coordinates?
How do I get a table of how far every place is from every other place?
Given map positions of shops, how do I find the nearest pair?
How far is it in a straight line from (0, 0) to (3, 4)?
Pairwise euclidean distance matrix numpy broadcasting?
"""

import numpy as np

points = np.array([[0, 0], [3, 4], [3, 5], [10, 0]])

differences = points[:, None, :] - points[None, :, :]
distances = np.sqrt((differences**2).sum(axis=2))
print("Distance of the first two points:", distances[0, 1])

np.fill_diagonal(distances, np.inf)
first, second = np.unravel_index(distances.argmin(), distances.shape)
print("Closest points:", points[first].tolist(), points[second].tolist())
