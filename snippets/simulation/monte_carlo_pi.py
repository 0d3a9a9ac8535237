"""Estimate pi by Monte Carlo: the share of random points in a square that fall inside a circle.

How can throwing random darts at a board give me 3.14?
How do I approximate the circle constant with random numbers?
How close to 3.14159 do I get with a million random points?
For a math fair, how do I show that chance can measure a circle's area?
Pi estimation random points quarter circle numpy?
"""

import numpy as np

rng = np.random.default_rng(seed=0)
points = rng.random((1_000_000, 2))

inside = (points**2).sum(axis=1) <= 1
estimate = 4 * inside.mean()
print(f"Estimate of pi: {estimate:.2f}")
print(f"Off by less than 0.01: {abs(estimate - np.pi) < 0.01}")
