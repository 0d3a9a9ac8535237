"""Join two SQL tables on a key, such as employees with the name of their department."""

import sqlite3

db = sqlite3.connect(":memory:")
db.executescript("""
    CREATE TABLE departments (id INTEGER PRIMARY KEY, name TEXT);
    CREATE TABLE employees (name TEXT, department_id INTEGER);
    INSERT INTO departments VALUES (1, 'IT'), (2, 'Sales');
    INSERT INTO employees VALUES ('Ann', 1), ('Bob', 2), ('Cem', 1);
""")

query = """
    SELECT employees.name, departments.name FROM employees
    JOIN departments ON departments.id = employees.department_id
    ORDER BY employees.name
"""
for employee, department in db.execute(query):
    print(f"{employee} works in {department}")
