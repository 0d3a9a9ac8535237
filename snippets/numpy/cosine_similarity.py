"""Compute the dot product, length and angle of two vectors, and their cosine similarity.

Two users rated films with numbers; how alike are their tastes by the angle between ratings?
How do I compute the angle between two arrows such as (3, 4) and (4, 3)?
How do I compare two text embeddings to see how closely they point the same way?
In physics class, how do I get the magnitude of a force and its scalar product with another?
Numpy norm dot product angle between vectors degrees?
"""

import numpy as np

a = np.array([3.0, 4.0])
b = np.array([4.0, 3.0])

dot = a @ b
cosine = dot / (np.linalg.norm(a) * np.linalg.norm(b))
print("Dot product:", dot)
print("Length of the first vector:", np.linalg.norm(a))
print("Cosine similarity:", round(cosine, 4))
print("Angle in degrees:", round(np.degrees(np.arccos(cosine)), 2))
