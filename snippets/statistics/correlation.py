"""Measure how strongly two variables are related, with Pearson's correlation coefficient.

It is 1 for a perfect rising line, -1 for a falling one, and near 0 without a linear relation.

Do pupils who study more get better marks; how strong is the connection as one number?
How do I express between -1 and 1 whether two lists rise together?
Is there a link between coffee drunk and hours slept, and is it negative?
How strongly does temperature go along with ice cream sales, as a coefficient?
Pearson r from two lists pure python?
"""

import math


def correlation(xs, ys):
    mean_x, mean_y = sum(xs) / len(xs), sum(ys) / len(ys)
    together = sum((x - mean_x) * (y - mean_y) for x, y in zip(xs, ys, strict=True))
    spread_x = sum((x - mean_x) ** 2 for x in xs)
    spread_y = sum((y - mean_y) ** 2 for y in ys)
    return together / math.sqrt(spread_x * spread_y)


hours = [1, 2, 3, 4, 5]
print("Studying and marks:", round(correlation(hours, [52, 60, 61, 70, 77]), 3))
print("Studying and free time:", round(correlation(hours, [9, 8, 7, 6, 5]), 3))
