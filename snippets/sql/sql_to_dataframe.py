"""Load the result of a SQL query into a pandas DataFrame, and write a DataFrame to a SQL table.

How do I get my SQLite data into pandas for analysis?
How do I save a dataframe as a database table?
My cities are in a database; how do I fetch inhabitants per country as a pandas table?
How can I move lab results from a dataframe into a database and query them back?
Pandas read_sql_query to_sql sqlite3 example?
"""

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
