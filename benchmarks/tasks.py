"""Thirty everyday questions of our own for a real model, with checkers, and a small library of programs to retrieve from.

An entry is the question, a reference program, and `output: ` with a number (the output has it, however it is written) or a
regular expression. `python -m benchmarks.tasks` runs all programs and checks the checkers.
"""

from __future__ import annotations

import math
import re
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

FILES = {
    "expenses.csv": (
        "date,category,amount\n2024-03-01,rent,780\n2024-03-02,food,54.20\n2024-03-05,travel,31.50\n"
        "2024-03-09,food,61.30\n2024-03-15,books,22\n2024-03-21,travel,118.40\n2024-03-28,food,47.10\n"
    ),
    "students.csv": (
        "name,class,points\nAmir,A,71\nBritta,B,64\nChloe,B,83\nDmitri,A,90\nElena,B,75\nFarid,A,58\nGrete,B,52\n"
    ),
    "weather.csv": (
        "day,celsius,rain\nMon,14.5,0\nTue,16,2.4\nWed,11.5,7.1\nThu,12,0.3\nFri,19.5,0\nSat,21,0\nSun,17.5,1.2\n"
    ),
    "books.csv": (
        "title,author,year,pages\nThe Quiet Canal,Noor,1998,312\nSnow Lines,Ibsen,2011,254\nCopper Hill,Noor,2004,521\n"
        "A Map of Salt,Okoye,2019,407\n"
    ),
    "stock.csv": "item,count,price\nbolt,120,0.15\nhinge,35,2.40\nlamp,8,19.90\nrope,14,6.50\n",
    "example.csv": "city,kind,count,price\nOslo,boat,3,20\nBern,train,5,8\nOslo,train,2,9\n",
}
"""What the questions and the library name; `example.csv` is for the library."""

TASKS_TEXT = r"""
How much is 17 percent of 2350?
print(2350 * 17 / 100)
output: 399.5
---
A recipe for 4 persons needs 300 g of flour. How many grams do 7 persons need?
print(300 / 4 * 7)
output: 525
---
What is 2 to the power of 15?
print(2**15)
output: 32768
---
A car uses 6.5 litres per 100 km. How many litres does it use for 340 km?
print(6.5 * 340 / 100)
output: 22.1
---
What is the sum of all multiples of 3 below 50?
print(sum(range(3, 50, 3)))
output: 408
---
A phone costs 640 euros after a discount of 20 percent. How much did it cost before?
print(640 / 0.8)
output: 800
---
How many minutes does a leap year have?
print(366 * 24 * 60)
output: 527040
---
Wie viel sind 15 Meilen in Kilometern, wenn eine Meile 1,609344 km hat? Runde auf zwei Stellen.
print(round(15 * 1.609344, 2))
output: 24.14
---
How many words are there in 'the ship left the harbour before the storm began'?
print(len("the ship left the harbour before the storm began".split()))
output: 9
---
Write 'level crossing' backwards, letter by letter.
print("level crossing"[::-1])
output: gnissorc level
---
How many vowels are there in 'extraordinary weather'? Count a, e, i, o and u.
print(sum(letter in "aeiou" for letter in "extraordinary weather"))
output: 8
---
How often does the most frequent letter of 'banana bandana' occur?
from collections import Counter
print(Counter("banana bandana").most_common(1)[0][1])
output: 6
---
Sort the words 'pear fig apple kiwi cherry' by alphabet.
print(" ".join(sorted("pear fig apple kiwi cherry".split())))
output: (?is)apple\W+cherry\W+fig\W+kiwi\W+pear
---
Is 'never odd or even' the same when it is read backwards and blanks are left out?
text = "never odd or even".replace(" ", "")
print("yes" if text == text[::-1] else "no")
output: (?is)^(?!.*\b(no|not|false)\b).*(\b(yes|true)\b|\bis (a palindrome|the same)\b)
---
Quelle est la longueur du mot le plus long dans 'une petite maison au bord de la rivière' ?
print(max(map(len, "une petite maison au bord de la rivière".split())))
output: 7
---
How many days are there from 14 February 2023 to 3 September 2023?
from datetime import date
print((date(2023, 9, 3) - date(2023, 2, 14)).days)
output: 201
---
What weekday was 9 November 1989?
from datetime import date
print(date(1989, 11, 9).strftime("%A"))
output: (?i)thursday
---
What date is 45 days after 20 December 2023?
from datetime import date, timedelta
print(date(2023, 12, 20) + timedelta(days=45))
output: (?i)2024-0?2-0?3|\b0?3(rd)?( of)? feb\w*,? 2024|feb\w* 0?3(rd)?,? 2024|0?3[./]0?2[./]2024|0?2/0?3/2024
---
How many Sundays did March 2024 have?
from datetime import date
print(sum(date(2024, 3, day).weekday() == 6 for day in range(1, 32)))
output: 5
---
How many minutes are there between 09:45 and 17:20 on the same day?
print((17 * 60 + 20) - (9 * 60 + 45))
output: 455
---
What is the mean of 12, 16, 11, 18 and 13?
print(sum([12, 16, 11, 18, 13]) / 5)
output: 14
---
What is the median of 8, 3, 10, 5, 7 and 1?
import statistics
print(statistics.median([8, 3, 10, 5, 7, 1]))
output: 6
---
Which numbers are in both lists [3, 8, 15, 22, 31] and [5, 8, 13, 22, 40]?
print(sorted({3, 8, 15, 22, 31} & {5, 8, 13, 22, 40}))
output: (?<![\d,] )(?<!\d)(8\D{1,7}22|22\D{1,7}8)(?!\d|, ?\d)
---
What is the sum of the two largest of the numbers 45, 12, 78, 34 and 77?
print(sum(sorted([45, 12, 78, 34, 77])[-2:]))
output: 155
---
What is the sample standard deviation of 2, 4, 4, 6 and 9, rounded to two places?
import statistics
print(round(statistics.stdev([2, 4, 4, 6, 9]), 2))
output: 2.65
---
What is the total of the amounts in expenses.csv?
import csv
print(round(sum(float(row["amount"]) for row in csv.DictReader(open("expenses.csv"))), 2))
output: 1114.5
---
Which category in expenses.csv has the second highest total, and how much is it?
import csv
totals = {}
for row in csv.DictReader(open("expenses.csv")):
    totals[row["category"]] = totals.get(row["category"], 0) + float(row["amount"])
name = sorted(totals, key=totals.get)[-2]
print(name, round(totals[name], 2))
output: (?is)^(?!.*\brent\b)(?=.*\bfood\b).*\b162\.(6|59999)
---
What is the average of the points of class B in students.csv?
import csv
points = [int(row["points"]) for row in csv.DictReader(open("students.csv")) if row["class"] == "B"]
print(sum(points) / len(points))
output: 68.5
---
On how many days of weather.csv was there more than 0 rain?
import csv
print(sum(float(row["rain"]) > 0 for row in csv.DictReader(open("weather.csv"))))
output: 4
---
What are all items in stock.csv worth together, count times price?
import csv
print(round(sum(int(row["count"]) * float(row["price"]) for row in csv.DictReader(open("stock.csv"))), 2))
output: 352.2
"""

SNIPPETS_TEXT = r'''
"""A share in percent: how much 35 of 140 is."""
part, whole = 35, 140
print("Percent:", part / whole * 100)
---
"""A price after percent were added: 19 percent tax on 50 euros."""
print("With tax:", 50 * (1 + 19 / 100))
---
"""The price before a tax of 19 percent, from the price that costs 119 euros with it."""
print("Before:", 119 / (1 + 19 / 100))
---
"""Scale an amount by persons: 2 litres of soup are for 5 persons, how many litres do 8 need."""
litres_for_one = 2 / 5
print("Litres:", litres_for_one * 8)
---
"""A rate per 100: a printer needs 4 ml of ink per 100 pages; ink that 250 pages use."""
print("Ink:", 4 * 250 / 100)
---
"""Powers and roots of numbers."""
print(3**4, 81**0.5)
---
"""The sum of numbers that can be divided by 7 below 30: multiples with a range."""
print("Sum:", sum(n for n in range(1, 30) if n % 7 == 0))
---
"""Convert units: seconds of a week, from days, hours and minutes."""
print("Seconds:", 7 * 24 * 60 * 60)
---
"""Einheiten umrechnen: 3 Zoll in Zentimetern, ein Zoll hat 2,54 cm; runde auf eine Stelle."""
print("Zentimeter:", round(3 * 2.54, 1))
---
"""Count the words of a sentence."""
print("Words:", len("a small red kite".split()))
---
"""Count how many of some letters (digits, consonants, vowels) a text has."""
print("Letters s and t:", sum(letter in "st" for letter in "lost street"))
---
"""Turn a text round, last letter first, by slicing it backwards."""
print("drawer"[::-1])
---
"""Turn the order of words round."""
print(" ".join(reversed("one two three".split())))
---
"""The most frequent word of a text and how often it occurs."""
from collections import Counter
word, count = Counter("to be or not to be or to go".split()).most_common(1)[0]
print(word, count)
---
"""Sort names by length."""
print(" ".join(sorted("Ludmila Ed Karl".split(), key=len)))
---
"""Sort words from z to a, against the alphabet."""
print(" ".join(sorted("oak elm ash".split(), reverse=True)))
---
"""Whether a number reads the same backwards (a palindrome)."""
digits = "13834"
print("yes" if digits == digits[::-1] else "no")
---
"""Le mot le plus court dans une phrase et la longueur des mots."""
words = "il fait très beau".split()
print("Le plus court:", min(words, key=len))
---
"""The longest word of a sentence."""
print("Longest:", max("we sailed past islands".split(), key=len))
---
"""Days from one date to another."""
from datetime import date
print("Days:", (date(2020, 5, 20) - date(2020, 5, 2)).days)
---
"""The weekday of a date."""
from datetime import date
print(date(2015, 6, 17).strftime("%A"))
---
"""The date that comes some weeks before a day."""
from datetime import date, timedelta
print(date(2022, 8, 30) - timedelta(weeks=2))
---
"""How many Fridays a month has: go over its days."""
from datetime import date
print("Fridays:", sum(date(2021, 2, day).weekday() == 4 for day in range(1, 29)))
---
"""Minutes between two times of a day like 06:10 and 07:00."""
from datetime import datetime
start, end = datetime.strptime("06:10", "%H:%M"), datetime.strptime("07:00", "%H:%M")
print("Minutes:", (end - start).seconds // 60)
---
"""The age in years on a day."""
from datetime import date
born, day = date(1980, 4, 2), date(2010, 3, 1)
print("Age:", day.year - born.year - ((day.month, day.day) < (born.month, born.day)))
---
"""The mean and the sum of numbers."""
numbers = [3, 9]
print("Mean:", sum(numbers) / len(numbers), "Sum:", sum(numbers))
---
"""The median of numbers: the middle one once they are sorted."""
import statistics
print("Median:", statistics.median([9, 2, 4]))
---
"""The population standard deviation of numbers, rounded."""
import statistics
print("Deviation:", round(statistics.pstdev([1, 3, 3, 5]), 3))
---
"""Which items are only in the first of two lists."""
first, second = [1, 2, 3], [2]
print("Only in the first:", [n for n in first if n not in second])
---
"""What is in one of two lists or in both, without repetitions."""
print(sorted({1, 4} | {4, 6}))
---
"""The three smallest of some numbers."""
print("Smallest:", sorted([14, 3, 25, 8])[:3])
---
"""The difference between the largest and the smallest number."""
numbers = [14, 3, 25]
print("Difference:", max(numbers) - min(numbers))
---
"""The total of a column of numbers in a CSV file."""
import csv
rows = list(csv.DictReader(open("example.csv")))
print("Total count:", sum(int(row["count"]) for row in rows))
---
"""Totals of a CSV file for each group, from the highest: which city has the highest total count."""
import csv
totals = {}
for row in csv.DictReader(open("example.csv")):
    totals[row["city"]] = totals.get(row["city"], 0) + int(row["count"])
best = max(totals, key=totals.get)
print("Highest:", best, totals[best])
---
"""The average of a column in the rows of a CSV file that belong to one kind or class."""
import csv
prices = [float(row["price"]) for row in csv.DictReader(open("example.csv")) if row["kind"] == "train"]
print("Average:", sum(prices) / len(prices))
---
"""How many rows of a CSV file have a number of less than 4 in a column."""
import csv
print("Rows:", sum(int(row["count"]) < 4 for row in csv.DictReader(open("example.csv"))))
---
"""Multiply two columns of a CSV file, count times price, row by row, and show the largest."""
import csv
values = {row["city"]: int(row["count"]) * float(row["price"]) for row in csv.DictReader(open("example.csv"))}
print("Largest:", max(values.values()))
---
"""The row of a CSV file with the smallest value in a column."""
import csv
row = min(csv.DictReader(open("example.csv")), key=lambda row: float(row["price"]))
print(row["city"], row["price"])
---
"""Prime numbers up to a limit."""
print([n for n in range(2, 20) if all(n % d for d in range(2, n))])
---
"""Growth by percent over years."""
amount = 200.0
for _ in range(3):
    amount *= 1.02
print("After 3 years:", round(amount, 2))
---
"""The greatest common divisor and the least common multiple."""
import math
print(math.gcd(12, 18), math.lcm(4, 6))
'''

_NUMBER = re.compile(r"-?\d+(?:[,.'\u00a0\u202f]\d+)*")
_IGNORED = frozenset(
    ("the", "and", "are", "for", "how", "what", "which", "many", "have", "has", "with", "there", "does")
)


@dataclass(frozen=True)
class Task:
    """A question for a real model.

    Attributes:
        query: The question.
        reference: A program that answers it.
        wanted: What the output must have: a number, or a regular expression.
    """

    query: str
    reference: str
    wanted: str

    @property
    def files(self) -> tuple[str, ...]:
        """Names of the files that the question needs."""
        return tuple(name for name in FILES if name in self.query)

    def right(self, output: str) -> bool:
        """Whether an output answers the question."""
        if not re.fullmatch(r"-?[\d.]+", self.wanted):
            return bool(re.search(self.wanted, output))
        return any(math.isclose(number, float(self.wanted), rel_tol=1e-6) for number in _numbers(output))


def _numbers(text: str) -> Iterator[float]:
    """The numbers of a text, with and without separators of thousands, with decimal points and commas."""
    for found in _NUMBER.findall(text):
        bare = re.sub(r"['\u00a0\u202f]", "", found)
        for reading in {bare.replace(",", ""), bare.replace(".", "").replace(",", ".")}:
            if reading.count(".") <= 1:
                yield float(reading)


def _task(entry: str) -> Task:
    query, *program, last = entry.splitlines()
    return Task(query, "\n".join(program) + "\n", last.removeprefix("output: "))


TASKS: tuple[Task, ...] = tuple(_task(entry.strip()) for entry in TASKS_TEXT.split("\n---\n"))
SNIPPETS: tuple[str, ...] = tuple(entry.strip() + "\n" for entry in SNIPPETS_TEXT.split("\n---\n"))


def _words(text: str) -> set[str]:
    """The words of a text, cut to their first letters so that forms of a word are one, without what it quotes."""
    plain = re.sub(r"(?<!\w)'[^']*'", "", text.lower())
    return {word[:5] for word in re.findall(r"[^\W\d_]{3,}", plain) if word not in _IGNORED}


@cache
def _spread() -> Counter[str]:
    return Counter(word for snippet in SNIPPETS for word in _words(snippet))


def retrieve(query: str) -> str:
    """The program of the library that shares most words with a question; words that few programs have count more."""
    asked = _words(query)
    return max(SNIPPETS, key=lambda snippet: sum(1 / _spread()[word] for word in asked & _words(snippet)))


def put_files(folder: Path) -> None:
    """Write all files into a folder."""
    for name, text in FILES.items():
        (folder / name).write_text(text)


def complaints() -> Iterator[str]:
    """What is wrong with the tasks and the library."""
    with tempfile.TemporaryDirectory() as folder:
        put_files(Path(folder))
        outputs = {
            program: _run(program, folder) for program in (*SNIPPETS, *(task.reference for task in TASKS))
        }
    for program, output in outputs.items():
        if not output.strip():
            yield f"this prints nothing: {program}"
    for task in TASKS:
        if not task.right(outputs[task.reference]):
            yield f"{task.query} {outputs[task.reference].strip()} is not {task.wanted}"
        if task.right(task.query):
            yield f"the question alone is taken for an answer: {task.query}"
        if task.right(outputs[retrieve(task.query)]):
            yield f"the hint is taken for an answer: {task.query}"


def _run(program: str, folder: str) -> str:
    command = [sys.executable, "-c", program]
    return subprocess.run(command, cwd=folder, capture_output=True, text=True, timeout=20, check=False).stdout


def main() -> int:
    """Print each question with what is retrieved for it, and what is wrong."""
    print(f"{len(TASKS)} tasks, {len(SNIPPETS)} programs to retrieve from\n")
    for task in TASKS:
        print(f"{task.query}\n    {retrieve(task.query).splitlines()[0]}")
    found = list(complaints())
    print("\n" + ("\n".join(found) or "All references pass their checkers."))
    return bool(found)


if __name__ == "__main__":
    sys.exit(main())
