"""Convert names between camelCase and snake_case.

How do I change userName to user_name in my code automatically?
How do I put underscores between words that are joined by capital letters?
My API returns firstName keys but Python likes first_name; how do I translate them?
How can I rename database columns like order_date into orderDate?
Camelcase to underscore regex python?
"""

import re


def to_snake(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def to_camel(name):
    return re.sub(r"_(\w)", lambda match: match[1].upper(), name)


for name in ["userName", "parseHTMLPage", "total2Pay"]:
    print(f"{name} -> {to_snake(name)}")
print("first_last_name ->", to_camel("first_last_name"))
