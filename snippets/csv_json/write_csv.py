"""Write a list of dictionaries to a CSV file with a header row.

Values with commas or quotes are quoted by the csv module.
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
