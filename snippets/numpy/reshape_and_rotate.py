"""Reshape, flatten, rotate and flip an array or grid."""

import numpy as np

grid = np.arange(1, 7).reshape(2, 3)

print("Two rows of three:")
print(grid)
print("Rotated clockwise:")
print(np.rot90(grid, k=-1))
print("Mirrored left to right:", np.fliplr(grid).tolist())
print("Flattened column by column:", grid.flatten(order="F").tolist())
