"""Count the days between two dates.

The difference of two dates is a number of days; whole weeks and what remains follow with divmod.
"""

from datetime import date

start = date(2024, 1, 1)
end = date(2024, 12, 25)

days = (end - start).days
weeks, rest = divmod(days, 7)
print(f"From {start} to {end}: {days} days, or {weeks} weeks and {rest} days")
