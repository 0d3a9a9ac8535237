"""Select the rows of a DataFrame that meet several conditions, with boolean masks or query.

Combine conditions with & and |, each in parentheses; isin tests against a list.

How do I list people over 30 who live in Oslo from my data table?
How do I combine two criteria with and/or when picking records in pandas?
Which houses in my table cost between 200 and 400 thousand or are in certain towns?
How do I keep only entries whose city is in a given list?
Dataframe boolean condition isin query between?
"""

import pandas as pd

people = pd.DataFrame(
    {
        "name": ["Ann", "Bob", "Cem", "Dia"],
        "age": [34, 19, 45, 28],
        "city": ["Oslo", "Rome", "Oslo", "Paris"],
    }
)

adults_in_oslo = people[(people["age"] > 30) & (people["city"] == "Oslo")]
print("Over 30 and in Oslo:", adults_in_oslo["name"].tolist())
print("In Rome or Paris:", people[people["city"].isin(["Rome", "Paris"])]["name"].tolist())
print("Between 20 and 40:", people.query("20 <= age <= 40")["name"].tolist())
