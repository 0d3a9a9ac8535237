"""Join two SQL tables on a key, such as employees with the name of their department.

How do I show each worker together with the department title stored in another database table?
How do I combine two database tables through a foreign key?
Pupils have a class_id; how do I list their names next to the class names in a query?
How do I look up the author's name for every book with a query over two tables?
Sql join two tables on id sqlite example?
"""

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
