"""List the leap years in a range and check whether a year is a leap year.

A year is one if it is divisible by 4, but not by 100 unless also by 400.
"""


def is_leap(year):
    return year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)


print("Leap years from 2000 to 2024:", [year for year in range(2000, 2025) if is_leap(year)])
print("1900 was a leap year:", is_leap(1900))
