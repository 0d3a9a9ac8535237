"""Load the result of a SQL query into a pandas DataFrame, and write a DataFrame to a SQL table."""

import sqlite3

import pandas as pd

db = sqlite3.connect(":memory:")
cities = pd.DataFrame(
    {"city": ["Oslo", "Bergen", "Rome"], "country": ["Norway", "Norway", "Italy"], "people": [7, 3, 28]}
)
cities.to_sql("cities", db, index=False)

table = pd.read_sql_query(
    "SELECT country, SUM(people) AS people FROM cities GROUP BY country ORDER BY country", db
)
print("People per country, in hundred thousands:")
print(table.to_string(index=False))
