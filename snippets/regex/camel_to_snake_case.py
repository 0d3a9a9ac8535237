"""Convert names between camelCase and snake_case."""

import re


def to_snake(name):
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", "_", name).lower()


def to_camel(name):
    return re.sub(r"_(\w)", lambda match: match[1].upper(), name)


for name in ["userName", "parseHTMLPage", "total2Pay"]:
    print(f"{name} -> {to_snake(name)}")
print("first_last_name ->", to_camel("first_last_name"))
