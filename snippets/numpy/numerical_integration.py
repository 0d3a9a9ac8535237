"""Approximate the area under a curve: numerical integration with the trapezoidal rule."""

import numpy as np


def integrate(function, start, end, steps=1000):
    x = np.linspace(start, end, steps + 1)
    y = function(x)
    width = (end - start) / steps
    return width * (y.sum() - (y[0] + y[-1]) / 2)


print("Area under x² from 0 to 3:", round(integrate(np.square, 0, 3), 4))
print("Area under the sine from 0 to pi:", round(integrate(np.sin, 0, np.pi), 4))
