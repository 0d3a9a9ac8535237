"""Check whether phone numbers are written in a valid format and bring them into one form."""

import re

PHONE = re.compile(r"(?:\+1[ -]?)?\(?(\d{3})\)?[ .-]?(\d{3})[ .-]?(\d{4})")


def normalize(text):
    match = PHONE.fullmatch(text.strip())
    return "-".join(match.groups()) if match else None


for text in ["(555) 123-4567", "+1 555.123.4567", "5551234567", "555-1234"]:
    print(f"{text}: {normalize(text) or 'not a valid number'}")
