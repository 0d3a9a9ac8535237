"""Build a pivot table of sales by month and product, with totals (cross tabulation).

How do I see tea and coffee sales with months down the side and products across the top?
How do I make an Excel-style summary with a grand total row and column in pandas?
How many hours did each employee spend on every project, as a two-way table?
How do I cross-tabulate visitors by weekday and museum with totals at the edges?
Pandas pivot_table margins aggfunc sum?
"""

import pandas as pd

sales = pd.DataFrame(
    {
        "month": ["Jan", "Jan", "Feb", "Feb", "Feb"],
        "product": ["tea", "coffee", "tea", "coffee", "tea"],
        "amount": [10, 20, 30, 40, 50],
    }
)

table = sales.pivot_table(
    index="month",
    columns="product",
    values="amount",
    aggfunc="sum",
    margins=True,
    margins_name="total",
    sort=False,
)
print("Sales by month and product:")
print(table)
