"""Group a pandas DataFrame by a column and compute mean, sum and count of each group."""

import pandas as pd

sales = pd.DataFrame(
    {
        "region": ["north", "south", "north", "south", "north"],
        "amount": [100, 200, 300, 400, 200],
    }
)

summary = sales.groupby("region")["amount"].agg(["mean", "sum", "count"])
print("Amounts by region:")
print(summary)
