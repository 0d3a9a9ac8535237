"""Sum a two-dimensional array over its rows, its columns and its diagonal.

Is my 3x3 number square magic, with equal totals across, down and diagonally?
How do I total each line and each column of a 2D array?
Points of teams per round are in a grid; how do I get per-team and per-round totals?
How do I get the highest entry in every row of a matrix?
Numpy sum axis 0 axis 1 trace?
"""

import numpy as np

square = np.array([[2, 7, 6], [9, 5, 1], [4, 3, 8]])

print("Row sums:", square.sum(axis=1).tolist())
print("Column sums:", square.sum(axis=0).tolist())
print("Diagonal sum (trace):", int(np.trace(square)))
print("Largest value of each row:", square.max(axis=1).tolist())
