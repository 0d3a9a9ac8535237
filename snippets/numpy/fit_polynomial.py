"""Fit a polynomial curve such as a parabola to points, and find its roots.

I measured the height of a ball at five times; how do I find the curve through them?
How do I get the coefficients of a second-degree function that best matches my data?
Where does the fitted curve hit zero, and what is its value further on?
Fuel use against speed looks curved; how do I model it with a squared term?
Numpy polynomial fit degree 2 coefficients and roots?
"""

import numpy as np

x = np.array([0, 1, 2, 3, 4])
y = np.array([6, 2, 0, 0, 2])

curve = np.polynomial.Polynomial.fit(x, y, deg=2).convert()
constant, linear, square = curve.coef.round(6)
print(f"Fitted curve: {square}x² {linear:+}x {constant:+}")
print("Roots:", curve.roots().round(4).tolist())
print("Value at x = 5:", round(curve(5), 4))
