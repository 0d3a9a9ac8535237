"""Filter CSV rows by a condition and sort them, such as all employees above a salary, best paid first.

How do I list only staff earning over 4000 from a file, richest at the top?
How can I keep just some lines of a comma-separated table and order them by a column?
From a spreadsheet of apartments, show those larger than 60 square metres, biggest first?
Which students in grades.csv scored above 80, ranked from top to bottom?
Select csv rows where value greater than, sort descending without pandas?
"""

import csv
from pathlib import Path

Path("staff.csv").write_text("name,department,salary\nAnn,IT,5200\nBob,HR,3900\nCem,IT,4800\nDia,HR,4500\n")

with open("staff.csv", newline="") as file:
    rows = [row for row in csv.DictReader(file) if int(row["salary"]) > 4000]
rows.sort(key=lambda row: int(row["salary"]), reverse=True)

print("Employees who earn more than 4000:")
for row in rows:
    print(f"{row['name']} ({row['department']}): {row['salary']}")
