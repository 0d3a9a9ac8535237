"""Find dates such as 2024-03-15 in running text with named groups, and take out year, month and day.

How do I spot every 2024-03-15 style day mentioned in a long letter?
How do I separate year, month and day from text using regular expression groups?
Which years are mentioned in the invoice notes, given ISO-style days inside sentences?
My diary text has days written as yyyy-mm-dd; how can I collect them?
Regex yyyy-mm-dd named groups finditer?
"""

import re

text = "Ordered on 2024-03-15, paid on 2024-04-02, invoice 2024-99."

pattern = r"\b(?P<year>\d{4})-(?P<month>\d{2})-(?P<day>\d{2})\b"
for match in re.finditer(pattern, text):
    print(f"{match.group()} has year {match['year']}, month {match['month']}, day {match['day']}")
print("Years found:", {year for year, _, _ in re.findall(pattern, text)})
