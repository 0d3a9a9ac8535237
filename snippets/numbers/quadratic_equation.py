"""Solve a quadratic equation ax² + bx + c = 0, with two, one or no real solutions.

How do I solve x squared minus 5x plus 6 equals zero?
For which x does a parabola cross the horizontal axis, if it does at all?
A rectangular garden has area 24 and is 5 longer than wide; how do I find its sides?
How do I use the discriminant to know the number of answers?
Quadratic formula roots a b c python?
"""

import math


def solve_quadratic(a, b, c):
    discriminant = b * b - 4 * a * c
    if discriminant < 0:
        return []
    root = math.sqrt(discriminant)
    return sorted({(-b - root) / (2 * a), (-b + root) / (2 * a)})


for a, b, c in [(1, -5, 6), (1, -4, 4), (1, 0, 1)]:
    print(f"{a}x² {b:+}x {c:+} = 0 has the real solutions {solve_quadratic(a, b, c)}")
