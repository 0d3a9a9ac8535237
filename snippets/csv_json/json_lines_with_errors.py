"""Read a JSON Lines file (one JSON object per line) and skip the lines that are not valid JSON.

My log export has one JSON record on each row, some broken; how do I read the good ones?
How do I load a .jsonl file without crashing on a bad line?
Sensor data arrives as a record per line; how can I report which line numbers are corrupt?
How to ignore blank or malformed rows while computing the average response time from ndjson?
Read jsonl skip invalid JSONDecodeError line number?
"""

import json
from pathlib import Path

Path("events.jsonl").write_text(
    '{"user": "ann", "ms": 120}\n{"user": "bob", ms: 80}\n\n{"user": "cem", "ms": 200}\n'
)

events = []
for number, line in enumerate(Path("events.jsonl").read_text().splitlines(), start=1):
    if not line.strip():
        continue
    try:
        events.append(json.loads(line))
    except json.JSONDecodeError as error:
        print(f"Line {number} is not valid JSON: {error.msg}")

print("Valid events:", len(events))
print("Average milliseconds:", sum(event["ms"] for event in events) / len(events))
