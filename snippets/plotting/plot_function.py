"""Plot the graph of mathematical functions such as sine and cosine between two limits.

How do I draw the curve of sin(x) from 0 to 2 pi?
How do I graph a math formula like a graphing calculator does?
How can I show two waves in one picture, one dashed, with a zero line?
For physics class, how do I plot an oscillation y = f(x) over an interval?
Plot y=f(x) with linspace matplotlib?
"""

import matplotlib.pyplot as plt
import numpy as np

x = np.linspace(0, 2 * np.pi, 200)

plt.plot(x, np.sin(x), label="sin(x)")
plt.plot(x, np.cos(x), label="cos(x)", linestyle="--")
plt.axhline(0, color="gray", linewidth=0.8)
plt.title("Sine and cosine")
plt.xlabel("x")
plt.ylabel("y")
plt.legend()
print("Largest value of the sine:", round(np.sin(x).max(), 3))
plt.show()
