"""Build a pivot table of sales by month and product, with totals (cross tabulation)."""

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
