"""Simulate random walks that step left or right and see how far from the start they end.

A drunk man steps left or right by coin toss; where is he after 100 steps?
How far from zero do I typically get after many plus one or minus one moves?
If I win or lose a euro on each coin flip, how far ahead or behind do I end?
How does the spread of a diffusing particle depend on the number of jumps?
Random walk numpy root mean square distance?
"""

import numpy as np

rng = np.random.default_rng(seed=7)
walks, steps = 10_000, 100

ends = rng.choice([-1, 1], size=(walks, steps)).sum(axis=1)
print(f"Average end position: {ends.mean():.1f}, expected 0")
print(f"Typical distance (root mean square): {np.sqrt((ends**2).mean()):.1f}, expected {steps**0.5:.0f}")
