"""Add columns to a DataFrame calculated from others, including one that depends on a condition.

How do I compute price times quantity and mark orders above 50 as free shipping?
How do I add a dataframe column with if/else logic?
How do I label each pupil pass or fail in a new field depending on the points?
How can I tag products small, medium or large by their total in a pandas table?
Np.where np.select new dataframe column example?
"""

import numpy as np
import pandas as pd

orders = pd.DataFrame({"item": ["pen", "desk", "lamp"], "price": [2, 150, 40], "quantity": [10, 1, 2]})

orders["total"] = orders["price"] * orders["quantity"]
orders["shipping"] = np.where(orders["total"] >= 50, "free", "paid")
orders["size"] = np.select(
    [orders["total"] < 50, orders["total"] < 100], ["small", "medium"], default="large"
)
print(orders.to_string(index=False))
