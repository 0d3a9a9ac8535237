"""Sum a two-dimensional array over its rows, its columns and its diagonal."""

import numpy as np

square = np.array([[2, 7, 6], [9, 5, 1], [4, 3, 8]])

print("Row sums:", square.sum(axis=1).tolist())
print("Column sums:", square.sum(axis=0).tolist())
print("Diagonal sum (trace):", int(np.trace(square)))
print("Largest value of each row:", square.max(axis=1).tolist())
