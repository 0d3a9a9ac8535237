"""Parse dates written in different formats and print them all as year-month-day.

Converts strings to dates with strptime, and dates to strings with strftime.

My list mixes 09.03.2024, 03/09/2024 and "9 March 2024"; how do I make them uniform?
How do I turn a text such as 31.12.2023 into a real date object?
How can I rewrite American month/day dates in ISO style?
Guests typed their birthdays in many styles on the form; how do I clean that up?
Strptime try several formats then strftime?
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
