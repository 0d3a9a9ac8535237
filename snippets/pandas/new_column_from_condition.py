"""Add columns to a DataFrame calculated from others, including one that depends on a condition."""

import numpy as np
import pandas as pd

orders = pd.DataFrame({"item": ["pen", "desk", "lamp"], "price": [2, 150, 40], "quantity": [10, 1, 2]})

orders["total"] = orders["price"] * orders["quantity"]
orders["shipping"] = np.where(orders["total"] >= 50, "free", "paid")
orders["size"] = np.select(
    [orders["total"] < 50, orders["total"] < 100], ["small", "medium"], default="large"
)
print(orders.to_string(index=False))
