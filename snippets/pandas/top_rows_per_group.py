"""Get the top two rows of each group in a DataFrame, such as the best sellers per category."""

import pandas as pd

products = pd.DataFrame(
    {
        "category": ["fruit", "fruit", "fruit", "drink", "drink", "drink"],
        "product": ["apple", "banana", "cherry", "tea", "cola", "juice"],
        "sold": [50, 80, 20, 30, 90, 60],
    }
)

best = products.sort_values("sold", ascending=False).groupby("category").head(2)
print("Best two of each category:")
print(best.sort_values(["category", "sold"], ascending=[True, False]).to_string(index=False))
