"""Tell what day of the week a date falls on.

Monday, Tuesday and so on, in English whatever the language of the system is.

Which weekday was I born on, for example 20 July 1969?
How do I check if a given date is a Saturday or Sunday?
Does my birthday fall on a Monday or a Tuesday this year?
What day was it when the moon landing happened?
Python get weekday name from date?
"""

import calendar
from datetime import date


def weekday_name(day):
    names = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
    return names[day.weekday()]


moon_landing = date(1969, 7, 20)
print(f"{moon_landing} was a {weekday_name(moon_landing)}")
print("It is a weekend:", moon_landing.weekday() >= calendar.SATURDAY)
