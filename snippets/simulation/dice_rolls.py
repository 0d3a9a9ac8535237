"""Simulate rolling two dice many times and compare how often each sum comes up with theory.

When playing Settlers, how often does each total of two dice show up?
How do I roll dice thousands of times on a computer and check the frequencies?
Why is seven the most common total with two dice?
How do I test if my random throws match the chances 1/36 to 6/36?
Two dice sum distribution simulate randint?
"""

import random
from collections import Counter

rng = random.Random(42)
rolls = 60_000

sums = Counter(rng.randint(1, 6) + rng.randint(1, 6) for _ in range(rolls))
for total in range(2, 13):
    expected = (6 - abs(7 - total)) / 36
    print(f"Sum {total:2}: simulated {sums[total] / rolls:.3f}, expected {expected:.3f}")
print("Most frequent sum:", max(sums, key=sums.get))
