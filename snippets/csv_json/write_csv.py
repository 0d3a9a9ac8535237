"""Write a list of dictionaries to a CSV file with a header row.

Values with commas or quotes are quoted by the csv module.

How do I save my address book of name, age and city so Excel can open it?
How to export records to comma-separated form when a name such as "Lee, Ann" contains a comma?
I have a list of dicts with club members; how do I store it as a table file?
How do I create a spreadsheet file with column titles from Python data?
Csv DictWriter writeheader writerows quoting example?
"""

import csv
from pathlib import Path

people = [
    {"name": "Lee, Ann", "age": 31, "city": "Oslo"},
    {"name": "Bob", "age": 25, "city": "Rome"},
]

with open("people.csv", "w", newline="", encoding="utf-8") as file:
    writer = csv.DictWriter(file, fieldnames=["name", "age", "city"], lineterminator="\n")
    writer.writeheader()
    writer.writerows(people)

print("Content of people.csv:")
print(Path("people.csv").read_text(encoding="utf-8"))
