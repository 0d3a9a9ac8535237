"""Compute a running total (cumulative sum) in SQL, such as the balance of an account by date."""

import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE bookings (day TEXT, amount INTEGER)")
bookings = [("2024-01-01", 100), ("2024-01-05", -30), ("2024-01-09", 50), ("2024-01-20", -70)]
db.executemany("INSERT INTO bookings VALUES (?, ?)", bookings)

query = "SELECT day, amount, SUM(amount) OVER (ORDER BY day) AS balance FROM bookings ORDER BY day"
for day, amount, balance in db.execute(query):
    print(f"{day}: {amount:+5} -> balance {balance}")
