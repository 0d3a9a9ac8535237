"""Calculate variance and standard deviation, of a sample and of a whole population.

How much do my archery scores scatter around their average?
When do I divide by n and when by n minus 1 for the spread of data?
How do I measure how consistent the daily bus delays are?
What does pstdev give compared to stdev for plant heights?
Population vs sample variance statistics python?
"""

import statistics

heights = [2, 4, 4, 4, 5, 5, 7, 9]

print("Population variance:", statistics.pvariance(heights))
print("Population standard deviation:", statistics.pstdev(heights))
print("Sample variance:", round(statistics.variance(heights), 3))
print("Sample standard deviation:", round(statistics.stdev(heights), 3))
