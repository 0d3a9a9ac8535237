"""Rank rows within each group in SQL with a window function, such as salaries per department.

Who earns most, second most and third most in each department by query?
How do I number the rows per category from highest to lowest in a database?
How do I get each runner's place within their age class using SQL?
How do I add a position column that restarts for every team?
Sql RANK OVER PARTITION BY ORDER BY desc?
"""

import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE staff (name TEXT, department TEXT, salary INTEGER)")
staff = [
    ("Ann", "IT", 5000),
    ("Bob", "IT", 6000),
    ("Cem", "HR", 4000),
    ("Dia", "HR", 4500),
    ("Eve", "IT", 5500),
]
db.executemany("INSERT INTO staff VALUES (?, ?, ?)", staff)

query = """
    SELECT department, name, salary,
           RANK() OVER (PARTITION BY department ORDER BY salary DESC) AS place
    FROM staff ORDER BY department, place
"""
for department, name, salary, place in db.execute(query):
    print(f"{department} number {place}: {name} with {salary}")
