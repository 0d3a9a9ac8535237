"""List the leap years in a range and check whether a year is a leap year.

A year is one if it is divisible by 4, but not by 100 unless also by 400.

Was 1900 one of those years with a February 29?
How do I know which years have 366 days?
My friend was born on 29 February; in which years can she really celebrate?
What is the rule with 4, 100 and 400 for the extra day in the calendar?
Leap year test divisible by 4 not 100 python?
"""


def is_leap(year):
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


print("Leap years from 2000 to 2024:", [year for year in range(2000, 2025) if is_leap(year)])
print("1900 was a leap year:", is_leap(1900))
