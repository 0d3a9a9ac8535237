"""Reshape a table from wide to long format with melt, one row for each student and subject."""

import pandas as pd

wide = pd.DataFrame({"student": ["Ann", "Bob"], "math": [90, 70], "art": [80, 95]})

long = wide.melt(id_vars="student", var_name="subject", value_name="mark")
print("Long format:")
print(long.to_string(index=False))
best = long.loc[long.groupby("student")["mark"].idxmax()]
print("Best subject of each:", dict(zip(best["student"], best["subject"], strict=True)))
