"""Draw a line chart of two series over the months, with a legend and markers."""

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
