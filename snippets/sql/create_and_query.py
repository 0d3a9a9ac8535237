"""Create a SQLite table, insert rows and query them with a WHERE condition and ORDER BY.

How do I start a small database of my books and list those after 1890, newest first?
How do I set up a table and put rows into it from Python?
How do I store my stamp collection in a database and look up by year?
How do I pass a value safely into a query with a question mark?
Sqlite3 create table insert select where order by python?
"""

import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE books (title TEXT, year INTEGER, price REAL)")
books = [("Emma", 1815, 9.5), ("Dracula", 1897, 12.0), ("Ulysses", 1922, 15.0), ("Dune", 1965, 11.0)]
db.executemany("INSERT INTO books VALUES (?, ?, ?)", books)

query = "SELECT title, year FROM books WHERE year > ? ORDER BY year DESC"
for title, year in db.execute(query, (1890,)):
    print(f"{title} appeared in {year}")
db.close()
