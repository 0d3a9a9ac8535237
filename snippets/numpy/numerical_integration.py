"""Approximate the area under a curve: numerical integration with the trapezoidal rule.

How do I get the surface beneath a curved line from 0 to 3?
How do I calculate a definite integral when I cannot solve it by hand?
Given a speed function over time, how far did the car travel?
How much water flowed through a pipe if the flow rate changes smoothly with time?
Trapezoid rule integral of function numpy linspace?
"""

import numpy as np


def integrate(function, start, end, steps=1000):
    x = np.linspace(start, end, steps + 1)
    y = function(x)
    width = (end - start) / steps
    return width * (y.sum() - (y[0] + y[-1]) / 2)


print("Area under x² from 0 to 3:", round(integrate(np.square, 0, 3), 4))
print("Area under the sine from 0 to pi:", round(integrate(np.sin, 0, np.pi), 4))
