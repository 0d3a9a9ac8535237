"""Plot a histogram that shows how data is distributed, with a line at the mean."""

import random

import matplotlib.pyplot as plt

random.seed(1)
heights = [random.gauss(170, 10) for _ in range(1000)]
mean = sum(heights) / len(heights)

plt.hist(heights, bins=20, edgecolor="white")
plt.axvline(mean, color="red", linestyle="--", label=f"mean {mean:.1f}")
plt.title("Distribution of heights")
plt.xlabel("Height in cm")
plt.ylabel("Number of people")
plt.legend()
print("People in the histogram:", len(heights))
plt.show()
