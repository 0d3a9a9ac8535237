"""Draw a line chart of two series over the months, with a legend and markers.

How do I compare monthly visitors of 2023 and 2024 in one graph?
How do I draw two lines with dots at each month and a key explaining them?
How can I show how heating costs went up and down over the months for two years?
How do I plot two curves in one picture with grid lines?
Matplotlib plot two lines marker legend months?
"""

import matplotlib.pyplot as plt

months = ["Jan", "Feb", "Mar", "Apr", "May"]
visitors = {"2023": [120, 135, 150, 160, 210], "2024": [140, 150, 170, 200, 260]}

for year, counts in visitors.items():
    plt.plot(months, counts, marker="o", label=year)
plt.title("Visitors per month")
plt.xlabel("Month")
plt.ylabel("Visitors")
plt.legend(title="Year")
plt.grid(alpha=0.3)
print("Most visitors in 2024:", max(visitors["2024"]))
plt.show()
