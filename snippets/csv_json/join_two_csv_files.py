"""Combine two CSV files by a shared id column, like a lookup table for customers and their orders.

One file lists customers, another their orders; how do I show the name next to each order?
How do I match lines from two spreadsheets by an id, like VLOOKUP in Excel?
My library has books.csv and loans.csv; how can I see which title each loan refers to?
What happens to orders whose customer number is not found in the other file?
Vlookup two csv files by id with DictReader?
"""

import csv
import io

customers = "id,name\n1,Ann\n2,Bob\n"
orders = "order,customer_id,total\n100,1,25\n101,2,40\n102,1,15\n103,9,60\n"

names = {row["id"]: row["name"] for row in csv.DictReader(io.StringIO(customers))}
for row in csv.DictReader(io.StringIO(orders)):
    name = names.get(row["customer_id"], "unknown customer")
    print(f"Order {row['order']} over {row['total']}: {name}")
