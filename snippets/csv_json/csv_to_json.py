"""Convert a CSV file to JSON, turning numbers from text into numbers.

My web app needs the stock spreadsheet as JSON; how do I turn the comma-separated file into it?
How do I export a table so that prices become real numbers rather than strings in JSON?
Can I change an Excel export with item, count and price into a list of objects?
How would I feed a school inventory saved as comma-separated values to a JavaScript page?
Csv DictReader to json.dumps with int and float?
"""

import csv
import json
from pathlib import Path

Path("stock.csv").write_text("item,count,price\napple,5,0.5\nmelon,2,3.25\n")

with open("stock.csv", newline="") as file:
    rows = list(csv.DictReader(file))
for row in rows:
    row["count"] = int(row["count"])
    row["price"] = float(row["price"])
Path("stock.json").write_text(json.dumps(rows, indent=2))

print("As JSON:")
print(Path("stock.json").read_text())
