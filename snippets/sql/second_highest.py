"""Find the second highest salary in a SQL table, even when several people share the highest.

What is the next best salary below the top one, and who gets it?
How do I get the runner-up value in a table if there is a tie for first?
Which product has the price just under the most expensive one in my database?
How do I find the silver medal score with a query when two athletes share gold?
Sql second largest value MAX subquery?
"""

import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE staff (name TEXT, salary INTEGER)")
staff = [("Ann", 7000), ("Bob", 6000), ("Cem", 7000), ("Dia", 5000)]
db.executemany("INSERT INTO staff VALUES (?, ?)", staff)

query = "SELECT MAX(salary) FROM staff WHERE salary < (SELECT MAX(salary) FROM staff)"
second = db.execute(query).fetchone()[0]
names = [name for (name,) in db.execute("SELECT name FROM staff WHERE salary = ?", (second,))]
print(f"Second highest salary: {second}, earned by {', '.join(names)}")
