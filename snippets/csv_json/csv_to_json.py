"""Convert a CSV file to JSON, turning numbers from text into numbers."""

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
