"""Count and sum per group in SQL with GROUP BY, keeping only large groups with HAVING.

Which customers ordered at least twice, and how much did each spend in total?
How do I filter on a count after aggregating in a database query?
Which club members attended three or more trainings, according to the database?
How do I list only categories with several entries together with their average?
Sql having count >= 2 sum avg per customer?
"""

import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE orders (customer TEXT, amount REAL)")
orders = [("Ann", 50), ("Bob", 20), ("Ann", 70), ("Cem", 200), ("Bob", 30)]
db.executemany("INSERT INTO orders VALUES (?, ?)", orders)

query = """
    SELECT customer, COUNT(*), SUM(amount), AVG(amount)
    FROM orders GROUP BY customer
    HAVING COUNT(*) >= 2 ORDER BY SUM(amount) DESC
"""
for customer, count, total, average in db.execute(query):
    print(f"{customer}: {count} orders, total {total}, average {average}")
