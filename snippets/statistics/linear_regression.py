"""Fit a straight line through data by least squares and predict a new value.

Simple linear regression gives slope and intercept; R squared tells how well the line fits.

If I spend 6 on advertising, what sales can I expect from my earlier data?
How do I calculate slope, intercept and R squared of a best-fit line?
How do I forecast a flat's rent from its size with a simple formula?
How does a plant's height depend on days, and what will it be next week?
Least squares slope intercept predict statistics module?
"""

import statistics

advertising = [1, 2, 3, 4, 5]
sales = [3.1, 4.9, 7.2, 8.8, 11.0]

slope, intercept = statistics.linear_regression(advertising, sales)
r_squared = statistics.correlation(advertising, sales) ** 2
print(f"Line: sales = {slope:.2f} * advertising + {intercept:.2f}")
print(f"R squared: {r_squared:.3f}")
print(f"Predicted sales for 6: {slope * 6 + intercept:.2f}")
