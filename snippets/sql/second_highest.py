"""Find the second highest salary in a SQL table, even when several people share the highest."""

import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE staff (name TEXT, salary INTEGER)")
staff = [("Ann", 7000), ("Bob", 6000), ("Cem", 7000), ("Dia", 5000)]
db.executemany("INSERT INTO staff VALUES (?, ?)", staff)

query = "SELECT MAX(salary) FROM staff WHERE salary < (SELECT MAX(salary) FROM staff)"
second = db.execute(query).fetchone()[0]
names = [name for (name,) in db.execute("SELECT name FROM staff WHERE salary = ?", (second,))]
print(f"Second highest salary: {second}, earned by {', '.join(names)}")
