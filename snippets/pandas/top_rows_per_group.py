"""Get the top two rows of each group in a DataFrame, such as the best sellers per category.

What are the two most sold products in fruit and in drinks?
How do I pick the three fastest runners of each age class from a dataframe?
How do I show only the first few records inside every category after sorting?
Which two songs per genre were played most often?
Pandas groupby head n largest per category?
"""

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
