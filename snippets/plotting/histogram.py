"""Plot a histogram that shows how data is distributed, with a line at the mean.

How are the heights of 1000 people spread out; how do I draw that?
How do I chart how many values fall in each range, with the average marked?
I have a list of exam points; how do I see the shape of their frequency?
How do I split commute times into 20 bins and display the counts?
Plt.hist bins axvline mean example?
"""

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
