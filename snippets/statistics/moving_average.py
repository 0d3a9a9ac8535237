"""Smooth a series with a moving average over the last few values (sliding window).

How do I even out jumpy daily temperatures by averaging three days at a time?
How do I average each value with the ones just before it in plain Python?
My weight goes up and down daily; how do I see the smoothed trend as numbers?
How can I smooth noisy sensor readings with a window of fixed length?
Rolling mean of list deque without pandas?
"""

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
