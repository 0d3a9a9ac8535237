"""Questions of our own whose program prints the answer.

An entry is the question in one line, `given: {...}` where variables are given, the program, which ends in one `print`, and
`output: ` with a regular expression.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any

CORPUS = r"""
How many letters do the words 'lantern', 'harbour' and 'mist' have together?
words = ["lantern", "harbour", "mist"]
print("Letters:", sum(len(word) for word in words))
output: \b18\b
---
What is the largest of the differences between neighbours of the variable levels?
given: {"levels": [12, 15, 9, 22, 20]}
steps = [abs(b - a) for a, b in zip(levels, levels[1:])]
print("Largest difference:", max(steps))
output: \b13\b
---
What do all the items in the variable basket cost together, price times count?
given: {"basket": [{"item": "tea", "price": 2.5, "count": 4}, {"item": "jam", "price": 3.2, "count": 2}]}
total = sum(row["price"] * row["count"] for row in basket)
print(f"Total: {total:.2f}")
output: \b16\.40?\b
---
Which city in the variable visits was visited most often?
given: {"visits": [{"city": "Lyon", "year": 2019}, {"city": "Porto", "year": 2020}, {"city": "Lyon", "year": 2023}]}
from collections import Counter

counts = Counter(row["city"] for row in visits)
print("Most visited:", counts.most_common(1)[0][0])
output: Lyon
---
What date is 100 days after 15 January 2024?
from datetime import date, timedelta

day = date(2024, 1, 15) + timedelta(days=100)
print(day.isoformat())
output: 2024-04-24
---
How many seconds does a day with 24 hours have?
seconds = 24 * 60 * 60
print("Seconds in a day:", seconds)
output: \b86,?400\b
---
What is the median of 7, 3, 9, 12 and 4?
import statistics

numbers = [7, 3, 9, 12, 4]
print("Median:", statistics.median(numbers))
output: \b7(\.0)?\b
---
What is the average age in the variable team?
given: {"team": [{"name": "Ann", "age": 31}, {"name": "Bob", "age": 42}, {"name": "Cem", "age": 26}]}
ages = [person["age"] for person in team]
print("Average age:", sum(ages) / len(ages))
output: \b33(\.0)?\b
---
What is the area of a circle with radius 3, with two places?
import math

area = math.pi * 3 ** 2
print(f"Area: {area:.2f}")
output: \b28\.27\b
---
How many different letters does the word 'mississippi' have?
letters = set("mississippi")
print(len(letters), "different letters")
output: \b4\b
---
Which employees in the variable staff earn more than 3000?
given: {"staff": [{"name": "Eva", "pay": 3100}, {"name": "Finn", "pay": 2900}, {"name": "Gus", "pay": 4000}]}
names = [person["name"] for person in staff if person["pay"] > 3000]
print("More than 3000:", ", ".join(names))
output: (?s)(?!.*Finn).*Eva.*Gus
---
What is the total of the variable orders for each month?
given: {"orders": [{"month": "May", "total": 40}, {"month": "June", "total": 15}, {"month": "May", "total": 2}]}
totals = {}
for order in orders:
    totals[order["month"]] = totals.get(order["month"], 0) + order["total"]
print(totals)
output: (?s)May\W+42.*June\W+15
---
What are all the numbers below 40 that can be divided by 7 and 2?
numbers = [n for n in range(1, 40) if n % 14 == 0]
print("Numbers:", numbers)
output: \b14\b\D+\b28\b
---
How many ways are there to choose 3 out of 8 books?
from math import comb

ways = comb(8, 3)
print("Ways:", ways)
output: \b56\b
---
What is 3/8 plus 5/12 as a fraction?
from fractions import Fraction

total = Fraction(3, 8) + Fraction(5, 12)
print("Sum:", total)
output: 19\s*[/,]\s*24
---
Which word of the variable line comes last in the alphabet?
given: {"line": "the wind blew over quiet fields"}
words = sorted(line.split())
print("Last word:", words[-1])
output: wind
---
What is the distance of the point (8, 15) from the origin?
import math

distance = math.hypot(8, 15)
print("Distance:", distance)
output: \b17(\.0)?\b
---
Which room in the variable rooms has the largest area, length times width?
given: {"rooms": [{"room": "hall", "length": 6, "width": 2}, {"room": "kitchen", "length": 4, "width": 4}]}
largest = max(rooms, key=lambda room: room["length"] * room["width"])
print("Largest room:", largest["room"])
output: kitchen
---
How many days does the variable trip take, from start to end?
given: {"trip": {"start": "2024-06-28", "end": "2024-07-03"}}
from datetime import date

days = (date.fromisoformat(trip["end"]) - date.fromisoformat(trip["start"])).days
print("Days:", days)
output: \b[56]\b
---
What are the names in the variable pets, by age from old to young?
given: {"pets": [{"pet": "Rex", "age": 4}, {"pet": "Mia", "age": 11}, {"pet": "Tom", "age": 7}]}
names = [row["pet"] for row in sorted(pets, key=lambda row: -row["age"])]
print(names)
output: (?s)Mia.*Tom.*Rex
---
How often do heads come up in the text 'HTTHHTHHHT'?
throws = "HTTHHTHHHT"
print("Heads:", throws.count("H"))
output: \b6\b
---
What do 12 percent of 350 plus 8 percent of 125 make?
total = 350 * 12 / 100 + 125 * 8 / 100
print("Together:", total)
output: \b52(\.0+)?\b
"""


@dataclass(frozen=True)
class Script:
    """A question that a program answers by printing.

    Attributes:
        task: The question.
        variables: What is given to the program.
        source: A right program.
        pattern: What its output must match.
    """

    task: str
    variables: dict[str, Any]
    source: str
    pattern: str


def _script(entry: str) -> Script:
    task, *lines, last = entry.splitlines()
    given = lines.pop(0).removeprefix("given: ") if lines[0].startswith("given: ") else "{}"
    pattern = last.removeprefix("output: ")
    re.compile(pattern)
    return Script(task, ast.literal_eval(given), "\n".join(lines) + "\n", pattern)


SCRIPTS: tuple[Script, ...] = tuple(_script(entry.strip()) for entry in CORPUS.split("\n---\n"))
