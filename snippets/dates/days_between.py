"""Count the days between two dates.

The difference of two dates is a number of days; whole weeks and what remains follow with divmod.

How many days are left until Christmas if today is January 1?
How long, in weeks and days, is it from 3 May to 20 August?
How do I subtract one calendar day from another to get the elapsed time?
How many nights is my hotel stay from check-in to check-out?
Python difference of two dates in days and weeks?
"""

from datetime import date

start = date(2024, 1, 1)
end = date(2024, 12, 25)

days = (end - start).days
weeks, rest = divmod(days, 7)
print(f"From {start} to {end}: {days} days, or {weeks} weeks and {rest} days")
