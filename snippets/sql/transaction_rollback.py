"""Update rows in a database transaction that is rolled back if something fails, like a bank transfer.

How do I move money between two accounts so that it never disappears halfway?
How do I undo all changes in the database if one statement fails?
How can I stop an account from going below zero when sending 500?
When booking a seat and charging a card, how do I make sure both happen or neither?
Sqlite commit rollback with db IntegrityError check constraint?
"""

import sqlite3

db = sqlite3.connect(":memory:")
db.execute("CREATE TABLE accounts (name TEXT, balance INTEGER CHECK (balance >= 0))")
db.executemany("INSERT INTO accounts VALUES (?, ?)", [("Ann", 100), ("Bob", 50)])
db.commit()


def transfer(sender, receiver, amount):
    try:
        with db:
            db.execute("UPDATE accounts SET balance = balance + ? WHERE name = ?", (amount, receiver))
            db.execute("UPDATE accounts SET balance = balance - ? WHERE name = ?", (amount, sender))
    except sqlite3.IntegrityError:
        return "refused"
    return "done"


print("Transfer of 30:", transfer("Ann", "Bob", 30))
print("Transfer of 500:", transfer("Ann", "Bob", 500))
print("Balances:", dict(db.execute("SELECT name, balance FROM accounts")))
