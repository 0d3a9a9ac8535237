"""Calculate someone's age in full years from the date of birth, on a given day.

I was born on 15 June 1990; how old am I today?
How can I tell if a customer is already 18 when buying alcohol?
How do I get completed years since birth when the birthday has not come yet this year?
Which kids turn six before school starts, judging by their birthdates?
Python how old is a person from birthdate?
"""

from datetime import date


def age_on(birthday, day):
    had_birthday = (day.month, day.day) >= (birthday.month, birthday.day)
    return day.year - birthday.year - (0 if had_birthday else 1)


birthday = date(1990, 6, 15)
for day in [date(2024, 6, 14), date(2024, 6, 15)]:
    print(f"Born {birthday}, age on {day}: {age_on(birthday, day)}")
