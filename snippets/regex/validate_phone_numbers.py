"""Check whether phone numbers are written in a valid format and bring them into one form.

Is (555) 123-4567 a proper US telephone number?
How do I make all telephone entries in my contacts look like 555-123-4567?
Customers type their mobile in different ways; how do I standardize and reject bad ones?
How can a form tell that 555-1234 lacks the area code?
Phone number regex normalize us format?
"""

import re

PHONE = re.compile(r"(?:\+1[ -]?)?\(?(\d{3})\)?[ .-]?(\d{3})[ .-]?(\d{4})")


def normalize(text):
    match = PHONE.fullmatch(text.strip())
    return "-".join(match.groups()) if match else None


for text in ["(555) 123-4567", "+1 555.123.4567", "5551234567", "555-1234"]:
    print(f"{text}: {normalize(text) or 'not a valid number'}")
