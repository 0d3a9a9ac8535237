"""Draw a pie chart of shares with percentages, one slice pulled out.

How do I show which part of my salary goes to rent, food and savings in a circle?
How do I make a round diagram with percent labels and highlight one piece?
How can I present election results as slices of a cake?
How do I pull one wedge out of a circular diagram to emphasise it?
Plt.pie autopct explode startangle example?
"""

import matplotlib.pyplot as plt

budget = {"Rent": 900, "Food": 450, "Transport": 150, "Savings": 300}

explode = [0.1 if name == "Savings" else 0 for name in budget]
plt.pie(budget.values(), labels=budget.keys(), explode=explode, autopct="%.0f%%", startangle=90)
plt.title("Monthly budget")
plt.axis("equal")
print("Total budget:", sum(budget.values()))
plt.show()
