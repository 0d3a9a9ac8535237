"""Read settings from a TOML file such as pyproject.toml, with tables, lists and dates."""

import tomllib

text = """
title = "Bakery"
opened = 2020-03-01

[prices]
bread = 3.5
roll = 0.5

[[staff]]
name = "Ann"
[[staff]]
name = "Bob"
"""

settings = tomllib.loads(text)
print("Title:", settings["title"])
print("Opened in the year", settings["opened"].year)
print("Two rolls cost", 2 * settings["prices"]["roll"])
print("Staff:", [person["name"] for person in settings["staff"]])
