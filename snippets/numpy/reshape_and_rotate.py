"""Reshape, flatten, rotate and flip an array or grid.

How do I turn my pixel picture a quarter turn clockwise?
How do I arrange the numbers 1 to 6 in two rows of three?
How can I mirror a game board left to right?
How do I make one long list from a table, going down the columns?
Numpy rot90 fliplr flatten reshape example?
"""

import numpy as np

grid = np.arange(1, 7).reshape(2, 3)

print("Two rows of three:")
print(grid)
print("Rotated clockwise:")
print(np.rot90(grid, k=-1))
print("Mirrored left to right:", np.fliplr(grid).tolist())
print("Flattened column by column:", grid.flatten(order="F").tolist())
