"""Solve a system of linear equations with numpy, such as 2x + y = 5 and x - 3y = -1."""

import numpy as np

coefficients = np.array([[2, 1], [1, -3]])
right_side = np.array([5, -1])

x, y = np.linalg.solve(coefficients, right_side)
print(f"Solution: x = {x:.2f}, y = {y:.2f}")
print("It is right:", bool(np.allclose(coefficients @ [x, y], right_side)))
