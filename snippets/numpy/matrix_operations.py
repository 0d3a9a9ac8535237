"""Multiply matrices and compute the transpose, determinant and inverse of a matrix."""

import numpy as np

a = np.array([[1, 2], [3, 4]])
b = np.array([[0, 1], [1, 0]])

print("Product:", (a @ b).tolist())
print("Transpose:", a.T.tolist())
print("Determinant:", round(np.linalg.det(a), 6))
print("Inverse:", np.linalg.inv(a).round(6).tolist())
