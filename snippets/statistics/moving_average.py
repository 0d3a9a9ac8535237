"""Smooth a series with a moving average over the last few values (sliding window)."""

from collections import deque


def moving_average(values, size):
    window = deque(maxlen=size)
    averages = []
    for value in values:
        window.append(value)
        if len(window) == size:
            averages.append(sum(window) / size)
    return averages


temperatures = [10, 12, 14, 13, 15, 20]
print("Three-day moving average:", moving_average(temperatures, 3))
