"""Group a pandas DataFrame by a column and compute mean, sum and count of each group.

What is the average purchase in every region of my sales dataframe?
How do I compute several statistics per category at once with pandas?
What average mark, total and number of tests does each class have in my dataframe?
For each player, how many games and how many goals on average?
Pandas groupby agg mean sum count?
"""

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
