"""Show a table of numbers as a heatmap with a color bar, such as a correlation matrix."""

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
