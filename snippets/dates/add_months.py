"""Add months to a date, staying inside the month: January 31 plus one month is the end of February.

My contract started on January 31 and renews monthly; when is the next due date?
How do I find the same day three months from now when that month is shorter?
A warranty lasts 18 months from purchase; on what date does it end?
What date was it two months before a given day, keeping month lengths in mind?
Python date plus n months end of month without dateutil?
"""

import calendar
from datetime import date


def add_months(day, months):
    years, month = divmod(day.month - 1 + months, 12)
    year, month = day.year + years, month + 1
    last = calendar.monthrange(year, month)[1]
    return date(year, month, min(day.day, last))


start = date(2024, 1, 31)
print("One month later:", add_months(start, 1))
print("Twelve months later:", add_months(start, 12))
print("Two months earlier:", add_months(start, -2))
