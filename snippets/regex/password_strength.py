"""Check the strength of a password: length, upper and lower case letters, digits and symbols.

Is "Secret123" good enough, or what does it lack?
How do I enforce rules for a new login, such as a capital letter and a number?
My sign-up form should reject weak secrets; how do I tell users what is missing?
How do I test whether my wifi passphrase has symbols and enough characters?
Password validation regex rules python?
"""

import re

RULES = {
    "at least 8 characters": r".{8,}",
    "a lower case letter": r"[a-z]",
    "an upper case letter": r"[A-Z]",
    "a digit": r"\d",
    "a symbol": r"[^A-Za-z0-9]",
}


def missing(password):
    return [rule for rule, pattern in RULES.items() if not re.search(pattern, password)]


for password in ["secret", "Secret123", "S3cret!pass"]:
    lacks = missing(password)
    print(f"{password}: {'strong' if not lacks else 'needs ' + ', '.join(lacks)}")
