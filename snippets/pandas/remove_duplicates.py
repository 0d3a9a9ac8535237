"""Find and drop duplicate rows of a DataFrame, keeping the newest entry for each email address."""

import pandas as pd

contacts = pd.DataFrame(
    {
        "email": ["ann@example.com", "bob@example.com", "ANN@example.com ", "cem@example.com"],
        "city": ["Oslo", "Rome", "Bergen", "Paris"],
        "updated": ["2023-01-01", "2023-05-01", "2024-02-01", "2022-09-01"],
    }
)

contacts["email"] = contacts["email"].str.strip().str.lower()
print("Duplicates:", contacts.duplicated("email").sum())
newest = contacts.sort_values("updated").drop_duplicates("email", keep="last").sort_values("email")
print(newest.to_string(index=False))
