"""Group the rows of a CSV by a category and total each group, without pandas."""

import csv
import io
from collections import defaultdict

data = """region,product,sales
north,tea,100
south,tea,80
north,coffee,50
south,coffee,120
"""

totals = defaultdict(int)
for row in csv.DictReader(io.StringIO(data)):
    totals[row["region"]] += int(row["sales"])

for region, total in sorted(totals.items(), key=lambda pair: pair[1], reverse=True):
    print(f"Sales in the {region}: {total}")
