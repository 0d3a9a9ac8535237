"""Model the weather as a Markov chain and find the share of sunny and rainy days in the long run."""

import numpy as np

states = ["sunny", "rainy"]
chances = np.array([[0.8, 0.2], [0.4, 0.6]])  # Row: today; column: tomorrow.

after_two_days = np.linalg.matrix_power(chances, 2)
print(f"Sunny two days after a sunny day: {after_two_days[0, 0]:.2f}")

share = np.array([1.0, 0.0])
for _ in range(100):
    share = share @ chances
for state, part in zip(states, share, strict=True):
    print(f"In the long run {state}: {part:.3f}")
