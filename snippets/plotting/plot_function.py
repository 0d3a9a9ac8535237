"""Plot the graph of mathematical functions such as sine and cosine between two limits."""

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
