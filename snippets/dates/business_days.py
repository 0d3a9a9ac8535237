"""Count business days between two dates, leaving out weekends and public holidays.

Working days: the start is included, the end is not.
"""

from datetime import date, timedelta


def business_days(start, end, holidays=()):
    days = (start + timedelta(days=n) for n in range((end - start).days))
    return sum(day.weekday() < 5 and day not in holidays for day in days)


start, end = date(2024, 12, 23), date(2025, 1, 6)
holidays = {date(2024, 12, 25), date(2024, 12, 26), date(2025, 1, 1)}
print("Business days without holidays:", business_days(start, end))
print("Business days with holidays taken off:", business_days(start, end, holidays))
