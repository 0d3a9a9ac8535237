"""Put several plots next to each other in one figure with subplots, and save it as a PNG file."""

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
