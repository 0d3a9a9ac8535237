"""Compare groups side by side in a grouped bar chart, such as sales per quarter and shop.

How do I draw two shops' sales per quarter as columns beside each other?
How do I place columns for two series next to one another with a legend?
How can I show boys' and girls' results per school year in paired columns?
How do I compare this year's and last year's rainfall month by month with adjacent columns?
Matplotlib clustered bar chart width offset?
"""

import matplotlib.pyplot as plt
import numpy as np

quarters = ["Q1", "Q2", "Q3", "Q4"]
sales = {"Oslo": [20, 24, 30, 28], "Rome": [15, 22, 26, 35]}

positions = np.arange(len(quarters))
width = 0.4
for index, (shop, values) in enumerate(sales.items()):
    plt.bar(positions + index * width, values, width, label=shop)
plt.xticks(positions + width / 2, quarters)
plt.title("Sales per quarter")
plt.xlabel("Quarter")
plt.ylabel("Sales in thousands")
plt.legend()
print("Total sales:", {shop: sum(values) for shop, values in sales.items()})
plt.show()
