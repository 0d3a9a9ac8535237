"""Group the rows of a CSV by a category and total each group, without pandas.

How much did we sell in the north versus the south, reading a plain sales file?
How do I sum amounts per category from comma-separated data with only the standard library?
My bank statement has a category column; how much did I spend on each one?
How many kilometres did each runner of the club log, from a training file?
Csv subtotal per group defaultdict without dataframe?
"""

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
