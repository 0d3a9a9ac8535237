"""Parse dates written in different formats and print them all as year-month-day.

Converts strings to dates with strptime, and dates to strings with strftime.
"""

from datetime import datetime

FORMATS = ["%Y-%m-%d", "%d.%m.%Y", "%m/%d/%Y", "%d %B %Y"]


def parse_date(text):
    for pattern in FORMATS:
        try:
            return datetime.strptime(text, pattern).date()
        except ValueError:
            continue
    return None


for text in ["2024-03-09", "09.03.2024", "03/09/2024", "9 March 2024", "soon"]:
    day = parse_date(text)
    print(f"{text:>12} -> {day.strftime('%Y-%m-%d') if day else 'not a date'}")
