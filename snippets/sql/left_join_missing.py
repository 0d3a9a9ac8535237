"""Find rows without a match in another table, such as customers who never ordered, with LEFT JOIN.

Which customers have never bought anything from our shop, according to the database?
How do I find records in one database table that have no partner in the other?
Which members have not paid any fee this year, comparing two database tables?
Which library books were never lent out, given a loans table?
Sql left join where is null anti join?
"""

import sqlite3

db = sqlite3.connect(":memory:")
db.executescript("""
    CREATE TABLE customers (id INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE orders (customer_id INTEGER, total REAL);
    INSERT INTO customers VALUES (1, 'Ann'), (2, 'Bob'), (3, 'Cem');
    INSERT INTO orders VALUES (1, 20), (1, 35), (3, 15);
""")

query = """
    SELECT customers.name FROM customers
    LEFT JOIN orders ON orders.customer_id = customers.id
    WHERE orders.customer_id IS NULL
"""
print("Customers without orders:", [name for (name,) in db.execute(query)])
