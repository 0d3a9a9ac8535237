"""Add up daily values by month with a date column, in pandas.

Time series: parse the dates with to_datetime and group by the period of the month.
"""

import pandas as pd

orders = pd.DataFrame(
    {
        "day": ["2024-01-05", "2024-01-20", "2024-02-01", "2024-02-29", "2024-03-15"],
        "amount": [100, 50, 70, 30, 200],
    }
)

orders["day"] = pd.to_datetime(orders["day"])
monthly = orders.groupby(orders["day"].dt.to_period("M"))["amount"].sum()
for month, total in monthly.items():
    print(f"Total of {month}: {total}")
print("Best month:", monthly.idxmax())
