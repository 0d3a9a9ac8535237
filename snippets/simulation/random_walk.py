"""Simulate random walks that step left or right and see how far from the start they end."""

import numpy as np

rng = np.random.default_rng(seed=7)
walks, steps = 10_000, 100

ends = rng.choice([-1, 1], size=(walks, steps)).sum(axis=1)
print(f"Average end position: {ends.mean():.1f}, expected 0")
print(f"Typical distance (root mean square): {np.sqrt((ends**2).mean()):.1f}, expected {steps**0.5:.0f}")
