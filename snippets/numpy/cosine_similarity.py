"""Compute the dot product, length and angle of two vectors, and their cosine similarity."""

import numpy as np

a = np.array([3.0, 4.0])
b = np.array([4.0, 3.0])

dot = a @ b
cosine = dot / (np.linalg.norm(a) * np.linalg.norm(b))
print("Dot product:", dot)
print("Length of the first vector:", np.linalg.norm(a))
print("Cosine similarity:", round(cosine, 4))
print("Angle in degrees:", round(np.degrees(np.arccos(cosine)), 2))
