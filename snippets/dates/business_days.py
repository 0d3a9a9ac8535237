"""Count business days between two dates, leaving out weekends and public holidays.

Working days: the start is included, the end is not.

How many working days are there from 23 December to 6 January with Christmas off?
How do I count weekdays only, skipping Saturdays, Sundays and bank holidays?
How many vacation days must I request for two weeks around Easter?
A supplier promises delivery within 10 workdays; how do I check how many have passed?
Count workdays between dates excluding weekends holidays?
"""

from datetime import date, timedelta


def business_days(start, end, holidays=()):
    days = (start + timedelta(days=n) for n in range((end - start).days))
    return sum(day.weekday() < 5 and day not in holidays for day in days)


start, end = date(2024, 12, 23), date(2025, 1, 6)
holidays = {date(2024, 12, 25), date(2024, 12, 26), date(2025, 1, 1)}
print("Business days without holidays:", business_days(start, end))
print("Business days with holidays taken off:", business_days(start, end, holidays))
