"""Model the weather as a Markov chain and find the share of sunny and rainy days in the long run.

If it is sunny today, how likely is it to be sunny the day after tomorrow?
What fraction of days will be rainy over many years, given day-to-day chances?
How do I use a table of transition probabilities from one state to the next?
Shoppers switch between two brands each month; what market shares settle in the end?
Markov transition matrix stationary distribution numpy?
"""

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
