"""Calculate variance and standard deviation, of a sample and of a whole population."""

import statistics

heights = [2, 4, 4, 4, 5, 5, 7, 9]

print("Population variance:", statistics.pvariance(heights))
print("Population standard deviation:", statistics.pstdev(heights))
print("Sample variance:", round(statistics.variance(heights), 3))
print("Sample standard deviation:", round(statistics.stdev(heights), 3))
