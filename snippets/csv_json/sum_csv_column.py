"""Read a CSV file and add up a column, with its average, smallest and largest value.

What did all my orders cost in total if the amounts are in orders.csv?
How do I get the sum, mean, minimum and maximum of one spreadsheet column in plain Python?
My electricity readings are in a file; what is the lowest, the highest and the average?
How much rain fell in total according to a column of a comma-separated weather file?
Total of a csv column with DictReader?
"""

import csv
from pathlib import Path

Path("orders.csv").write_text("product,amount\npen,12.50\nbook,30.00\nlamp,47.50\n")

with open("orders.csv", newline="") as file:
    amounts = [float(row["amount"]) for row in csv.DictReader(file)]

print("Rows:", len(amounts))
print("Total amount:", sum(amounts))
print("Average amount:", sum(amounts) / len(amounts))
print("Smallest and largest:", min(amounts), max(amounts))
