"""Put several plots next to each other in one figure with subplots, and save it as a PNG file.

How do I put two graphs beside each other in one picture and store it as an image?
How do I export my figure to a .png for a report?
How can I show squares and cubes in separate panels of one figure?
I need a row of small charts for my poster, one per city; how do I arrange them?
Plt.subplots multiple axes savefig png?
"""

from pathlib import Path

import matplotlib.pyplot as plt

x = list(range(1, 6))
powers = {"squares": [n**2 for n in x], "cubes": [n**3 for n in x]}

figure, panels = plt.subplots(1, len(powers), figsize=(8, 3))
for axes, (name, values) in zip(panels, powers.items(), strict=True):
    axes.plot(x, values, marker="s")
    axes.set(title=name.capitalize(), xlabel="n", ylabel=name)
figure.suptitle("Powers of n")
figure.tight_layout()
figure.savefig("powers.png", dpi=100)
print("Saved powers.png:", Path("powers.png").exists())
