"""Plot a bar chart of categories with the value written above each bar."""

import matplotlib.pyplot as plt

votes = {"Apples": 12, "Bananas": 19, "Cherries": 7}

figure, axes = plt.subplots()
bars = axes.bar(votes.keys(), votes.values(), color="steelblue")
axes.bar_label(bars)
axes.set_title("Favourite fruit")
axes.set_xlabel("Fruit")
axes.set_ylabel("Votes")
print("Favourite:", max(votes, key=votes.get))
plt.show()
