"""Show a table of numbers as a heatmap with a color bar, such as a correlation matrix.

How do I color a table so that high numbers are red and low ones blue?
How do I visualize which school subjects correlate with each other?
How can I show traffic by weekday and hour as colored squares?
How do I write the figures into the colored cells of a matrix picture?
Matplotlib imshow colorbar annotate correlation matrix?
"""

import matplotlib.pyplot as plt
import numpy as np

subjects = ["math", "physics", "art"]
marks = np.array([[90, 88, 60], [70, 74, 80], [50, 55, 75], [80, 79, 65]])

matrix = np.corrcoef(marks, rowvar=False)
plt.imshow(matrix, cmap="coolwarm", vmin=-1, vmax=1)
plt.colorbar(label="correlation")
plt.xticks(range(3), subjects)
plt.yticks(range(3), subjects)
for row, column in np.ndindex(matrix.shape):
    plt.text(column, row, f"{matrix[row, column]:.2f}", ha="center", va="center")
plt.title("Correlation of marks")
plt.xlabel("Subject")
plt.ylabel("Subject")
print("Math and physics correlate:", round(matrix[0, 1], 2))
plt.show()
