"""Find and drop duplicate rows of a DataFrame, keeping the newest entry for each email address.

My newsletter list has the same person twice; how do I keep just the latest record?
How do I delete repeated entries in a dataframe when the emails differ only in capitals or spaces?
Customers appear several times with old addresses; how do I retain the most recent one?
How many rows in my table are repeats of the same member?
Drop_duplicates keep last after sort_values?
"""

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
