"""Turn a JSON list of records into a CSV table, filling in fields that some records lack."""

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
