"""Calculate the mean, median and mode of a list of numbers.

Average, middle value and most frequent value, with the statistics module.

My test points are 70, 85, 85, 90, 100; what is the average and the middle one?
How do I find the most frequent number in a list and the spread from lowest to highest?
What is the typical house price on my street: the average or the middle value?
Which shoe size occurs most often among my customers, and what is the average?
Average middle and most common value of list python?
"""

import statistics

scores = [70, 85, 85, 90, 100]

print("Mean:", statistics.mean(scores))
print("Median:", statistics.median(scores))
print("Mode:", statistics.mode(scores))
print("Range:", max(scores) - min(scores))
