"""Find the first Monday, third Thursday or last Friday of a month.

When is Thanksgiving, the fourth Thursday in November, in 2024?
Our club meets on every second Tuesday; how do I get the date for this month?
How do I find the date of the last Friday of May for payday?
On what date does Labor Day fall, being the first Monday in September?
Date of third wednesday of given month calendar?
"""

import calendar
from datetime import date


def nth_weekday(year, month, weekday, n):
    """Give the n-th such weekday of the month; -1 is the last one."""
    last = calendar.monthrange(year, month)[1]
    days = [date(year, month, day) for day in range(1, last + 1)]
    matching = [day for day in days if day.weekday() == weekday]
    return matching[n - 1] if n > 0 else matching[n]


print("First Monday of September 2024:", nth_weekday(2024, 9, calendar.MONDAY, 1))
print("Fourth Thursday of November 2024:", nth_weekday(2024, 11, calendar.THURSDAY, 4))
print("Last Friday of May 2024:", nth_weekday(2024, 5, calendar.FRIDAY, -1))
