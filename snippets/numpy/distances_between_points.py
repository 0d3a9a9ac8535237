"""Compute the distance between every pair of points and find the two closest points."""

import numpy as np

points = np.array([[0, 0], [3, 4], [3, 5], [10, 0]])

differences = points[:, None, :] - points[None, :, :]
distances = np.sqrt((differences**2).sum(axis=2))
print("Distance of the first two points:", distances[0, 1])

np.fill_diagonal(distances, np.inf)
first, second = np.unravel_index(distances.argmin(), distances.shape)
print("Closest points:", points[first].tolist(), points[second].tolist())
