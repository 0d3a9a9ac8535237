"""Stack bars on top of each other to show how parts make up a total, such as energy by source.

How do I show how coal, gas and wind add up to total power per year?
How do I draw columns made of colored segments for each part of the whole?
How can I display my weekly screen time split by app in one column per week?
How do I show tuition, housing and food costs piled up per semester?
Pandas plot bar stacked True matplotlib?
"""

import matplotlib.pyplot as plt
import pandas as pd

energy = pd.DataFrame(
    {"coal": [50, 40, 25], "gas": [30, 30, 30], "wind": [20, 35, 55]},
    index=["2010", "2015", "2020"],
)

energy.plot.bar(stacked=True, rot=0)
plt.title("Energy by source")
plt.xlabel("Year")
plt.ylabel("Terawatt hours")
plt.legend(bbox_to_anchor=(1, 1))
plt.tight_layout()
print("Total per year:", energy.sum(axis=1).to_dict())
plt.show()
