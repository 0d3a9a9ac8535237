"""Plot a bar chart of categories with the value written above each bar.

How do I show votes for apples, bananas and cherries as columns with numbers on top?
How do I label each column with its height in matplotlib?
What diagram should I make for how many pets of each kind our class has?
How can I draw simple upright columns comparing a few categories?
Matplotlib bar with bar_label values above?
"""

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
