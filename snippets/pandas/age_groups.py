"""Sort numbers into bins with labels, such as ages into age groups, and count each bin."""

import pandas as pd

ages = pd.Series([5, 17, 18, 30, 42, 64, 65, 80])

groups = pd.cut(ages, bins=[0, 18, 65, 120], right=False, labels=["child", "adult", "senior"])
print("People in each age group:")
for group, count in groups.value_counts(sort=False).items():
    print(f"{group}: {count}")
