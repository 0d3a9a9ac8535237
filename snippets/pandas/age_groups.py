"""Sort numbers into bins with labels, such as ages into age groups, and count each bin.

How many children, adults and seniors are among our museum visitors by their ages?
How do I divide exam points into grade bands such as fail, pass and excellent?
How do I put incomes in low, middle and high ranges with named labels in pandas?
I have body weights of patients; how can I bucket them into ranges and tally?
Pd.cut bins labels right False count?
"""

import pandas as pd

ages = pd.Series([5, 17, 18, 30, 42, 64, 65, 80])

groups = pd.cut(ages, bins=[0, 18, 65, 120], right=False, labels=["child", "adult", "senior"])
print("People in each age group:")
for group, count in groups.value_counts(sort=False).items():
    print(f"{group}: {count}")
