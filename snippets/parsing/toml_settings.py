"""Read settings from a TOML file such as pyproject.toml, with tables, lists and dates.

How do I read values out of pyproject.toml in Python?
How do I load a config file with [prices] and [[staff]] sections and real dates?
My bakery app keeps its prices in a .toml; how can I use them?
Which standard module loads Tom's minimal language config into a dictionary?
Tomllib loads array of tables example?
"""

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
