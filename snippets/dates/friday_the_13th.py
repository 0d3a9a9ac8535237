"""Find every Friday the 13th of a year.

When are the unlucky Fridays in 2026?
How do I check which months have their 13th on a Friday?
I am superstitious and planning a wedding; which dates with a 13 should I avoid next year?
How often does the thirteenth fall on the day before Saturday in a given year?
List unlucky friday 13 dates in year python?
"""

from datetime import date


def fridays_13th(year):
    days = [date(year, month, 13) for month in range(1, 13)]
    return [day for day in days if day.weekday() == 4]


for day in fridays_13th(2026):
    print("Friday the 13th:", day)
