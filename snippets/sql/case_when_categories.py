"""Sort rows into categories in SQL with CASE WHEN and count each category.

How do I label products as cheap, medium or expensive by price in a query?
How do I use if-else logic inside a SELECT statement?
How many of my library's books are short, average or long, computed in the database?
How do I bucket customers by spending levels with a database query?
Sql CASE WHEN price ranges count sqlite?
"""

import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE products (name TEXT, price REAL)")
products = [("pen", 2), ("book", 15), ("lamp", 40), ("desk", 180), ("cup", 6), ("chair", 90)]
db.executemany("INSERT INTO products VALUES (?, ?)", products)

query = """
    SELECT CASE WHEN price < 10 THEN 'cheap' WHEN price < 100 THEN 'medium' ELSE 'expensive' END AS category,
           COUNT(*), MAX(price)
    FROM products GROUP BY category ORDER BY MAX(price)
"""
for category, count, highest in db.execute(query):
    print(f"{category}: {count} products, up to {highest}")
