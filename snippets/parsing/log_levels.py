"""Analyze a log file: count the messages of each level and list the errors with their time.

How many WARNING and ERROR entries does my application log contain?
At what time did the errors happen in yesterday's program output?
How do I split lines like "2024-05-01 10:05 ERROR text" into date, severity and text?
My heating controller writes INFO and ERROR lines; how do I get a summary?
Count log messages by severity Counter regex?
"""

import re
from collections import Counter

log = """2024-05-01 10:00:01 INFO Server started
2024-05-01 10:02:15 WARNING Disk is 80% full
2024-05-01 10:05:42 ERROR Cannot open orders.db
2024-05-01 10:06:00 INFO Retrying
2024-05-01 10:06:03 ERROR Gave up
"""

LINE = re.compile(r"(?P<day>\S+) (?P<time>\S+) (?P<level>[A-Z]+) (?P<message>.*)")
entries = [match.groupdict() for match in map(LINE.fullmatch, log.splitlines()) if match]

print("Messages by level:", dict(Counter(entry["level"] for entry in entries)))
for entry in entries:
    if entry["level"] == "ERROR":
        print(f"Error at {entry['time']}: {entry['message']}")
