"""Find every Friday the 13th of a year."""

from datetime import date


def fridays_13th(year):
    days = [date(year, month, 13) for month in range(1, 13)]
    return [day for day in days if day.weekday() == 4]


for day in fridays_13th(2026):
    print("Friday the 13th:", day)
