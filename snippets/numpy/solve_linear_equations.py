"""Solve a system of linear equations with numpy, such as 2x + y = 5 and x - 3y = -1.

Two coffees and a tea cost 5, one coffee minus three teas gives -1; what are the prices?
How do I find x and y from two equations with two unknowns?
Adults and kids paid 120 in total for 20 tickets; how many of each were there?
How do I balance mixtures when several conditions must hold simultaneously?
Linalg solve simultaneous equations numpy?
"""

import numpy as np

coefficients = np.array([[2, 1], [1, -3]])
right_side = np.array([5, -1])

x, y = np.linalg.solve(coefficients, right_side)
print(f"Solution: x = {x:.2f}, y = {y:.2f}")
print("It is right:", bool(np.allclose(coefficients @ [x, y], right_side)))
