"""Add up daily values by month with a date column, in pandas.

Time series: parse the dates with to_datetime and group by the period of the month.

I have daily spending with dates; how much did I spend in January, February and March?
How do I aggregate a dataframe of dated orders to months and find the best one?
In which month did my solar panels deliver the most, given daily readings?
How do I turn date strings into periods and total them per month?
Pandas to_datetime to_period M groupby sum?
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
