"""Calculate the mean, median and mode of a list of numbers.

Average, middle value and most frequent value, with the statistics module.
"""

import statistics

scores = [70, 85, 85, 90, 100]

print("Mean:", statistics.mean(scores))
print("Median:", statistics.median(scores))
print("Mode:", statistics.mode(scores))
print("Range:", max(scores) - min(scores))
