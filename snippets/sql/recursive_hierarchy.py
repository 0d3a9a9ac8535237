"""Walk a hierarchy in SQL with a recursive query, such as everyone who works under a manager.

Who reports to the boss directly or indirectly, and on which level?
How do I query an org chart stored with a manager_id column?
How can I list all descendants of a grandparent in a family tree database?
How do I print nested folders or categories when every row points to its parent?
WITH RECURSIVE parent child tree sqlite?
"""

import sqlite3

db = sqlite3.connect(":memory:")
db.executescript("""
    CREATE TABLE staff (id INTEGER PRIMARY KEY, name TEXT, manager_id INTEGER);
    INSERT INTO staff VALUES (1, 'Ann', NULL), (2, 'Bob', 1), (3, 'Cem', 2), (4, 'Dia', 1);
""")

query = """
    WITH RECURSIVE team(id, name, level) AS (
        SELECT id, name, 0 FROM staff WHERE manager_id IS NULL
        UNION ALL
        SELECT staff.id, staff.name, level + 1 FROM staff JOIN team ON staff.manager_id = team.id
    )
    SELECT name, level FROM team ORDER BY level, name
"""
for name, level in db.execute(query):
    print(f"Level {level}: {name}")
