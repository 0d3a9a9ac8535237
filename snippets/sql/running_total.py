"""Compute a running total (cumulative sum) in SQL, such as the balance of an account by date.

How do I show my account balance after every deposit and withdrawal with a query?
How do I accumulate amounts row after row, ordered by date, in a database?
How many kilometres had I cycled up to each date, using SQL?
How do I show the stock level of a warehouse after each movement?
Sql cumulative sum SUM OVER ORDER BY?
"""

import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE bookings (day TEXT, amount INTEGER)")
bookings = [("2024-01-01", 100), ("2024-01-05", -30), ("2024-01-09", 50), ("2024-01-20", -70)]
db.executemany("INSERT INTO bookings VALUES (?, ?)", bookings)

query = "SELECT day, amount, SUM(amount) OVER (ORDER BY day) AS balance FROM bookings ORDER BY day"
for day, amount, balance in db.execute(query):
    print(f"{day}: {amount:+5} -> balance {balance}")
