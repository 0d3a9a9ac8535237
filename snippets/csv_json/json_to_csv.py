"""Turn a JSON list of records into a CSV table, filling in fields that some records lack.

I downloaded contacts as JSON and want to open them in Excel; how do I convert?
How do I write a list of objects as a table when some lack an email?
Some records miss a field; how can the empty cell say unknown in the output table?
How do I collect all column names from API results with varying keys to make a spreadsheet?
Json array to csv with missing keys, DictWriter restval?
"""

import csv
import json
import sys

text = '[{"id": 1, "name": "Ann", "email": "ann@example.com"}, {"id": 2, "name": "Bob"}]'

records = json.loads(text)
columns = list(dict.fromkeys(key for record in records for key in record))
print("Columns:", columns)
writer = csv.DictWriter(sys.stdout, fieldnames=columns, restval="unknown", lineterminator="\n")
writer.writeheader()
writer.writerows(records)
