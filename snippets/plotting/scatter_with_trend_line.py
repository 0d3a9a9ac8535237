"""Make a scatter plot of two variables and draw the trend line (regression) through the points.

How do I show dots for study hours and marks and a straight line through them?
How do I add a best-fit line to a cloud of points?
Do ice cream sales rise with temperature; how do I picture that with a fitted line?
How do I plot car age against price and display the slope in the legend?
Matplotlib scatter polyfit regression line?
"""

import matplotlib.pyplot as plt
import numpy as np

hours = np.array([1, 2, 3, 4, 5, 6])
marks = np.array([52, 57, 61, 70, 74, 80])

slope, intercept = np.polyfit(hours, marks, 1)
plt.scatter(hours, marks, label="students")
plt.plot(hours, slope * hours + intercept, color="orange", label=f"{slope:.1f} x + {intercept:.1f}")
plt.title("Marks by hours of study")
plt.xlabel("Hours of study")
plt.ylabel("Mark")
plt.legend()
print(f"Each hour of study adds about {slope:.1f} marks")
plt.show()
