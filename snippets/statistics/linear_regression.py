"""Fit a straight line through data by least squares and predict a new value.

Simple linear regression gives slope and intercept; R squared tells how well the line fits.
"""

import statistics

advertising = [1, 2, 3, 4, 5]
sales = [3.1, 4.9, 7.2, 8.8, 11.0]

slope, intercept = statistics.linear_regression(advertising, sales)
r_squared = statistics.correlation(advertising, sales) ** 2
print(f"Line: sales = {slope:.2f} * advertising + {intercept:.2f}")
print(f"R squared: {r_squared:.3f}")
print(f"Predicted sales for 6: {slope * 6 + intercept:.2f}")
