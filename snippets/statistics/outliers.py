"""Detect outliers in measurements with the interquartile range rule.

A value is unusual if it lies more than 1.5 times the IQR below the first or above the third quartile.

One of my measurements is 95 while the rest are near 12; is it a mistake?
How do I pick out suspicious values that are far from the rest?
How do I flag strangely high electricity bills among the usual ones?
Which of the lap times are abnormally fast or slow by the 1.5 IQR rule?
Detect anomalies quartiles interquartile range list?
"""

import statistics


def find_outliers(values):
    first, _, third = statistics.quantiles(values, n=4, method="inclusive")
    margin = 1.5 * (third - first)
    return [value for value in values if value < first - margin or value > third + margin]


measured = [10, 12, 11, 13, 12, 95, 11, 12, -40]
print("Outliers:", find_outliers(measured))
