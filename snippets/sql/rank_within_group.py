"""Rank rows within each group in SQL with a window function, such as salaries per department."""

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
