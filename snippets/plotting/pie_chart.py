"""Draw a pie chart of shares with percentages, one slice pulled out."""

import matplotlib.pyplot as plt

budget = {"Rent": 900, "Food": 450, "Transport": 150, "Savings": 300}

explode = [0.1 if name == "Savings" else 0 for name in budget]
plt.pie(budget.values(), labels=budget.keys(), explode=explode, autopct="%.0f%%", startangle=90)
plt.title("Monthly budget")
plt.axis("equal")
print("Total budget:", sum(budget.values()))
plt.show()
