"""Multiply matrices and compute the transpose, determinant and inverse of a matrix.

How do I multiply the two tables [[1, 2], [3, 4]] and [[0, 1], [1, 0]] in linear algebra?
How do I swap rows and columns or undo a matrix in numpy?
Is my 2x2 matrix invertible, judging by its determinant?
For my linear algebra homework, how do I check a matrix product by computer?
Numpy matmul transpose det inv example?
"""

import numpy as np

a = np.array([[1, 2], [3, 4]])
b = np.array([[0, 1], [1, 0]])

print("Product:", (a @ b).tolist())
print("Transpose:", a.T.tolist())
print("Determinant:", round(np.linalg.det(a), 6))
print("Inverse:", np.linalg.inv(a).round(6).tolist())
