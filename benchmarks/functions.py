"""Small functions of our own: what is asked for, a right program, and calls with what they return.

An entry is the task, the program, and examples `call == value`. `scripts.py` has questions whose program prints.
"""

from __future__ import annotations

import ast
import re
from dataclasses import dataclass
from typing import Any

Example = tuple[tuple[Any, ...], Any]

TEXT = r"""
Write a function `initials(name)` that returns the upper-case first letters of the words of a name, each followed by a
dot.
def initials(name):
    return "".join(word[0].upper() + "." for word in name.split())
initials("Ada King Lovelace") == "A.K.L."
initials("grace hopper") == "G.H."
initials("") == ""
---
Write a function `vowel_words(text)` that returns how many words of a text start with a vowel.
def vowel_words(text):
    count = 0
    for word in text.lower().split():
        if word[0] in "aeiou":
            count += 1
    return count
vowel_words("An old cat ate") == 3
vowel_words("my dog") == 0
vowel_words("") == 0
---
Write a function `longest_word(text)` that returns the longest word made of letters in a text, the first one of equals.
import re

def longest_word(text):
    words = re.findall(r"[A-Za-z]+", text)
    return max(words, key=len) if words else ""
longest_word("A boat, a harbour!") == "harbour"
longest_word("one two six") == "one"
longest_word("12 34") == ""
---
Write a function `snake_case(name)` that turns a name in camel case into one in snake case.
import re

def snake_case(name):
    return re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower()
snake_case("totalAmountDue") == "total_amount_due"
snake_case("Plain") == "plain"
snake_case("page2Title") == "page2_title"
---
Write a function `title_from_slug(slug)` that turns a slug such as "a-small-step" into a title such as "A Small Step".
def title_from_slug(slug):
    words = slug.split("-")
    return " ".join(word.capitalize() for word in words if word)
title_from_slug("a-small-step") == "A Small Step"
title_from_slug("hello") == "Hello"
title_from_slug("two--dashes") == "Two Dashes"
---
Write a function `mask_card(number)` that replaces all digits of a card number but the last four by stars and keeps
the spaces.
def mask_card(number):
    hidden = number[:-4]
    masked = "".join("*" if letter.isdigit() else letter for letter in hidden)
    return masked + number[-4:]
mask_card("1234 5678 9012") == "**** **** 9012"
mask_card("98765") == "*8765"
mask_card("4321") == "4321"
---
Write a function `shift_letters(text, steps)` that moves every lower-case letter of a text by some steps in the
alphabet, round the end.
def shift_letters(text, steps):
    shifted = []
    for letter in text:
        if "a" <= letter <= "z":
            letter = chr((ord(letter) - 97 + steps) % 26 + 97)
        shifted.append(letter)
    return "".join(shifted)
shift_letters("abc", 2) == "cde"
shift_letters("xyz!", 3) == "abc!"
shift_letters("Hb", -1) == "Ha"
---
Write a function `squeeze(text)` that keeps one of each run of equal characters.
def squeeze(text):
    kept = ""
    for letter in text:
        if kept[-1:] != letter:
            kept += letter
    return kept
squeeze("aabccc") == "abc"
squeeze("  x  ") == " x "
squeeze("") == ""
---
Write a function `run_lengths(text)` that returns a list of pairs of a character and the length of its run, in order.
from itertools import groupby

def run_lengths(text):
    return [(letter, len(list(run))) for letter, run in groupby(text)]
run_lengths("aab") == [("a", 2), ("b", 1)]
run_lengths("zzzzz") == [("z", 5)]
run_lengths("") == []
---
Write a function `missing_letters(text)` that returns the letters from a to z that a text does not have, as one string
in order.
import string

def missing_letters(text):
    present = set(text.lower())
    return "".join(letter for letter in string.ascii_lowercase if letter not in present)
missing_letters("abcdefghijklmnopqrstuvw") == "xyz"
missing_letters("The quick brown fox jumps over a dog") == "lyz"
missing_letters("BCDEFGHIJKLMNOPQRSTUVWXYZ") == "a"
---
Write a function `wrap_words(text, width)` that returns the lines of a text that is broken between words at a width.
import textwrap

def wrap_words(text, width):
    return textwrap.wrap(text, width)
wrap_words("one two three", 7) == ["one two", "three"]
wrap_words("a b c", 1) == ["a", "b", "c"]
wrap_words("", 5) == []
---
Write a function `hashtags(text)` that returns the set of hashtags of a text in lower case, without the sign.
import re

def hashtags(text):
    return {tag.lower() for tag in re.findall(r"#(\w+)", text)}
hashtags("Sun #Summer and #sea, #summer") == {"summer", "sea"}
hashtags("nothing") == set()
hashtags("#a#b") == {"a", "b"}
---
Write a function `spell_umlauts(text)` that writes ä, ö, ü and ß as ae, oe, ue and ss.
def spell_umlauts(text):
    spelling = {"ä": "ae", "ö": "oe", "ü": "ue", "ß": "ss"}
    return "".join(spelling.get(letter, letter) for letter in text)
spell_umlauts("müßig") == "muessig"
spell_umlauts("schön wär") == "schoen waer"
spell_umlauts("plain") == "plain"
---
Write a function `weave(first, second)` that takes letters of two texts in turn and ends with what is left of the
longer one.
def weave(first, second):
    shorter = min(len(first), len(second))
    woven = "".join(first[i] + second[i] for i in range(shorter))
    return woven + first[shorter:] + second[shorter:]
weave("ace", "bdf") == "abcdef"
weave("a", "xyz") == "axyz"
weave("", "hi") == "hi"
---
Write a function `count_sentences(text)` that returns how many sentences a text has; each ends with one or more of the
signs . ! ?
import re

def count_sentences(text):
    return len(re.findall(r"[^.!?\s][^.!?]*[.!?]+", text))
count_sentences("Stop! Who goes there? Me.") == 3
count_sentences("Well... no.") == 2
count_sentences("no end") == 0
---
Write a function `swap_halves(text)` that puts the second half of a text before the first; a middle character stays
where it is.
def swap_halves(text):
    half = len(text) // 2
    middle = text[half : len(text) - half]
    return text[len(text) - half :] + middle + text[:half]
swap_halves("abcd") == "cdab"
swap_halves("abXcd") == "cdXab"
swap_halves("a") == "a"
---
Write a function `common_letter(text)` that returns the letter that occurs most often in a text, the first in the
alphabet of equals.
from collections import Counter

def common_letter(text):
    counts = Counter(letter for letter in text.lower() if letter.isalpha())
    return min(counts, key=lambda letter: (-counts[letter], letter)) if counts else None
common_letter("Banana") == "a"
common_letter("bb aa") == "a"
common_letter("123") == None
---
Write a function `strip_comments(lines)` that returns the lines without what follows a # and without lines that are
empty then.
def strip_comments(lines):
    kept = []
    for line in lines:
        code = line.split("#")[0].rstrip()
        if code:
            kept.append(code)
    return kept
strip_comments(["a = 1  # one", "# all", "b"]) == ["a = 1", "b"]
strip_comments([]) == []
strip_comments(["  x#y"]) == ["  x"]
---
Write a function `indent_levels(text)` that returns for each line of a text by how many steps of four spaces it is
indented.
def indent_levels(text):
    levels = []
    for line in text.splitlines():
        spaces = len(line) - len(line.lstrip(" "))
        levels.append(spaces // 4)
    return levels
indent_levels("a\n    b\n        c") == [0, 1, 2]
indent_levels("   x") == [0]
indent_levels("") == []
---
Write a function `frame_word(word, sign)` that returns three lines of text: the word between bars of the sign, which
is also at its sides.
def frame_word(word, sign):
    bar = sign * (len(word) + 4)
    return "\n".join([bar, f"{sign} {word} {sign}", bar])
frame_word("hi", "*") == "******\n* hi *\n******"
frame_word("", "#") == "####\n#  #\n####"
frame_word("abc", "+") == "+++++++\n+ abc +\n+++++++"
---
Write a function `lines_with(text, word)` that returns the numbers, from 1, of the lines of a text that have a word,
in any case.
def lines_with(text, word):
    found = []
    for number, line in enumerate(text.splitlines(), start=1):
        if word.lower() in line.lower().split():
            found.append(number)
    return found
lines_with("a cat\na dog\nCat", "cat") == [1, 3]
lines_with("concat", "cat") == []
lines_with("x\ny\nz", "z") == [3]
"""

NUMBERS = r"""
Write a function `cross_sum(number)` that returns the sum of the decimal digits of a whole number, whatever its sign.
def cross_sum(number):
    total = 0
    number = abs(number)
    while number > 0:
        total += number % 10
        number //= 10
    return total
cross_sum(1234) == 10
cross_sum(-909) == 18
cross_sum(0) == 0
---
Write a function `clamp_all(numbers, low, high)` that returns the numbers, each held between low and high.
def clamp_all(numbers, low, high):
    return [min(max(number, low), high) for number in numbers]
clamp_all([1, 5, 9], 3, 6) == [3, 5, 6]
clamp_all([], 0, 1) == []
clamp_all([-2.5, 0.5], -1, 1) == [-1, 0.5]
---
Write a function `round_to_five(cents)` that rounds an amount in whole cents to the nearest multiple of five.
def round_to_five(cents):
    return (cents + 2) // 5 * 5
round_to_five(12) == 10
round_to_five(13) == 15
round_to_five(100) == 100
round_to_five(98) == 100
---
Write a function `grown(amount, percent, years)` that returns an amount after years of growth by a percentage, rounded
to two places.
def grown(amount, percent, years):
    for _ in range(years):
        amount = amount * (1 + percent / 100)
    return round(amount, 2)
grown(1000, 5, 2) == 1102.5
grown(200, 10, 3) == 266.2
grown(50, 3, 0) == 50
---
Write a function `prime_powers(number)` that returns a dict from each prime factor of a number above 1 to how often it
divides it.
def prime_powers(number):
    powers = {}
    divisor = 2
    while number > 1:
        while number % divisor == 0:
            powers[divisor] = powers.get(divisor, 0) + 1
            number //= divisor
        divisor += 1
    return powers
prime_powers(360) == {2: 3, 3: 2, 5: 1}
prime_powers(17) == {17: 1}
prime_powers(49) == {7: 2}
---
Write a function `to_base(number, base)` that writes a number that is not negative with the digits of a base from 2 to
10, as text.
def to_base(number, base):
    digits = ""
    while number:
        number, rest = divmod(number, base)
        digits = str(rest) + digits
    return digits or "0"
to_base(10, 2) == "1010"
to_base(255, 8) == "377"
to_base(0, 3) == "0"
---
Write a function `roman(number)` that returns a number from 1 to 3999 as a Roman numeral.
def roman(number):
    steps = [
        (1000, "M"), (900, "CM"), (500, "D"), (400, "CD"), (100, "C"), (90, "XC"),
        (50, "L"), (40, "XL"), (10, "X"), (9, "IX"), (5, "V"), (4, "IV"), (1, "I"),
    ]
    numeral = ""
    for value, sign in steps:
        numeral += sign * (number // value)
        number %= value
    return numeral
roman(1994) == "MCMXCIV"
roman(8) == "VIII"
roman(3999) == "MMMCMXCIX"
---
Write a function `coins(cents)` that returns a dict from coin (50, 20, 10, 5, 2, 1) to how many are paid out, as few
coins as possible.
def coins(cents):
    paid = {}
    for coin in (50, 20, 10, 5, 2, 1):
        if cents >= coin:
            paid[coin] = cents // coin
            cents %= coin
    return paid
coins(88) == {50: 1, 20: 1, 10: 1, 5: 1, 2: 1, 1: 1}
coins(40) == {20: 2}
coins(0) == {}
---
Write a function `leap_years(first, last)` that returns the list of leap years from first to last, both included.
def leap_years(first, last):
    return [year for year in range(first, last + 1) if year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)]
leap_years(1896, 1904) == [1896, 1904]
leap_years(2000, 2000) == [2000]
leap_years(2021, 2023) == []
---
Write a function `diagonal(width, height)` that returns the length of the diagonal of a rectangle, rounded to three
places.
import math

def diagonal(width, height):
    return round(math.hypot(width, height), 3)
diagonal(3, 4) == 5.0
diagonal(1, 1) == 1.414
diagonal(0, 7) == 7.0
---
Write a function `meeting_day(rhythms)` that returns after how many days events with these rhythms in days coincide
again.
import math
from functools import reduce

def meeting_day(rhythms):
    return reduce(math.lcm, rhythms, 1)
meeting_day([4, 6]) == 12
meeting_day([2, 3, 5]) == 30
meeting_day([7]) == 7
---
Write a function `geometric_mean(numbers)` that returns the geometric mean of positive numbers, rounded to four places.
import math

def geometric_mean(numbers):
    return round(math.prod(numbers) ** (1 / len(numbers)), 4)
geometric_mean([2, 8]) == 4.0
geometric_mean([1, 3, 9]) == 3.0
geometric_mean([5]) == 5.0
---
Write a function `middle_value(numbers)` that returns the median of numbers, or None where there are none.
import statistics

def middle_value(numbers):
    return statistics.median(numbers) if numbers else None
middle_value([3, 1, 2]) == 2
middle_value([4, 1, 3, 2]) == 2.5
middle_value([]) == None
---
Write a function `share(part, whole)` that returns the percentage of a part in the whole with one place, or None if
the whole is 0.
def share(part, whole):
    if whole == 0:
        return None
    return round(100 * part / whole, 1)
share(1, 3) == 33.3
share(5, 5) == 100.0
share(1, 0) == None
---
Write a function `harmonic(count)` that returns the sum of 1/1, 1/2, … 1/count as a pair of numerator and denominator,
reduced.
from fractions import Fraction

def harmonic(count):
    total = sum((Fraction(1, n) for n in range(1, count + 1)), Fraction(0))
    return (total.numerator, total.denominator)
harmonic(1) == (1, 1)
harmonic(3) == (11, 6)
harmonic(4) == (25, 12)
---
Write a function `triangular(limit)` that returns the list of triangular numbers 1, 3, 6, … up to a limit that may be
reached.
def triangular(limit):
    found, step, value = [], 2, 1
    while value <= limit:
        found.append(value)
        value += step
        step += 1
    return found
triangular(10) == [1, 3, 6, 10]
triangular(14) == [1, 3, 6, 10]
triangular(0) == []
---
Write a function `squares_between(low, high)` that returns how many square numbers there are from low to high, both
included.
import math

def squares_between(low, high):
    return sum(1 for n in range(low, high + 1) if math.isqrt(n) ** 2 == n)
squares_between(1, 16) == 4
squares_between(5, 8) == 0
squares_between(0, 1) == 2
---
Write a function `average_speed(legs)` that returns the average speed over legs given as pairs of kilometres and
hours, with one place.
def average_speed(legs):
    distance = sum(leg[0] for leg in legs)
    hours = sum(leg[1] for leg in legs)
    return round(distance / hours, 1) if hours else 0.0
average_speed([(100, 2), (50, 1)]) == 50.0
average_speed([(10, 3)]) == 3.3
average_speed([]) == 0.0
---
Write a function `shared_digits(first, second)` that returns the set of decimal digits, as numbers, that two whole
numbers have in common.
def shared_digits(first, second):
    return {int(digit) for digit in set(str(first)) & set(str(second))}
shared_digits(1234, 4561) == {1, 4}
shared_digits(12, 34) == set()
shared_digits(7, 77) == {7}
---
Write a function `binomial_row(n)` that returns row n, counted from 0, of Pascal's triangle.
def binomial_row(n):
    row = [1]
    for k in range(n):
        row.append(row[-1] * (n - k) // (k + 1))
    return row
binomial_row(0) == [1]
binomial_row(4) == [1, 4, 6, 4, 1]
binomial_row(5) == [1, 5, 10, 10, 5, 1]
---
Write a function `nearest(numbers, target)` that returns the number that is closest to a target, the smaller one of
equals.
def nearest(numbers, target):
    return min(numbers, key=lambda number: (abs(number - target), number))
nearest([1, 5, 9], 6) == 5
nearest([8, 2], 5) == 2
nearest([-3, 4], 0) == -3
---
Write a function `exact_total(amounts)` that adds amounts given as texts such as "0.10" exactly and returns the sum as
text.
from decimal import Decimal

def exact_total(amounts):
    return str(sum((Decimal(amount) for amount in amounts), Decimal("0.00")))
exact_total(["0.10", "0.20"]) == "0.30"
exact_total(["19.99", "0.01", "5"]) == "25.00"
exact_total([]) == "0.00"
---
Write a function `celsius_table(start, stop, step)` that returns pairs of Celsius and Fahrenheit with one place, stop
included.
def celsius_table(start, stop, step):
    return [(celsius, round(celsius * 9 / 5 + 32, 1)) for celsius in range(start, stop + 1, step)]
celsius_table(0, 20, 10) == [(0, 32.0), (10, 50.0), (20, 68.0)]
celsius_table(37, 37, 1) == [(37, 98.6)]
celsius_table(-40, -40, 5) == [(-40, -40.0)]
---
Write a function `parity_split(numbers)` that returns a pair: the sum of the even numbers and the sum of the odd ones.
def parity_split(numbers):
    even = sum(number for number in numbers if number % 2 == 0)
    return (even, sum(numbers) - even)
parity_split([1, 2, 3, 4]) == (6, 4)
parity_split([]) == (0, 0)
parity_split([-1, -2]) == (-2, -1)
"""

LISTS = r"""
Write a function `running_total(numbers)` that returns the list of the sums of the numbers up to each place.
def running_total(numbers):
    total, sums = 0, []
    for number in numbers:
        total += number
        sums.append(total)
    return sums
running_total([1, 2, 3]) == [1, 3, 6]
running_total([5, -5]) == [5, 0]
running_total([]) == []
---
Write a function `chunks(items, size)` that cuts a list into lists of a size; the last one may be shorter.
def chunks(items, size):
    return [items[start : start + size] for start in range(0, len(items), size)]
chunks([1, 2, 3, 4, 5], 2) == [[1, 2], [3, 4], [5]]
chunks(["a"], 3) == [["a"]]
chunks([], 2) == []
---
Write a function `rotate(items, steps)` that moves the items of a list to the right by some steps; what leaves comes
in on the left.
def rotate(items, steps):
    if not items:
        return []
    steps %= len(items)
    return items[len(items) - steps :] + items[: len(items) - steps]
rotate([1, 2, 3, 4], 1) == [4, 1, 2, 3]
rotate([1, 2, 3], 5) == [2, 3, 1]
rotate([], 2) == []
---
Write a function `pairs_with_sum(numbers, total)` that returns the sorted list of pairs (small, large) of different
numbers with this sum.
def pairs_with_sum(numbers, total):
    known = set(numbers)
    return sorted((n, total - n) for n in known if n < total - n and total - n in known)
pairs_with_sum([1, 2, 3, 4], 5) == [(1, 4), (2, 3)]
pairs_with_sum([5, 5], 10) == []
pairs_with_sum([0, -1, 1], 0) == [(-1, 1)]
---
Write a function `moving_average(numbers, size)` that returns the averages, with two places, of all stretches of this
size.
def moving_average(numbers, size):
    return [round(sum(numbers[i : i + size]) / size, 2) for i in range(len(numbers) - size + 1)]
moving_average([1, 2, 3, 4], 2) == [1.5, 2.5, 3.5]
moving_average([10, 20], 2) == [15.0]
moving_average([1], 2) == []
---
Write a function `runner_up(scores)` that returns the second largest of the different scores, or None.
def runner_up(scores):
    different = sorted(set(scores), reverse=True)
    return different[1] if len(different) > 1 else None
runner_up([5, 9, 9, 7]) == 7
runner_up([3, 3]) == None
runner_up([1, 2]) == 1
---
Write a function `peaks(numbers)` that returns the places, from 0, of numbers that are larger than both neighbours.
def peaks(numbers):
    found = []
    for i in range(1, len(numbers) - 1):
        if numbers[i - 1] < numbers[i] > numbers[i + 1]:
            found.append(i)
    return found
peaks([1, 3, 2, 5, 4]) == [1, 3]
peaks([1, 2, 2, 1]) == []
peaks([3, 1]) == []
---
Write a function `keep_last(items)` that returns the items without repetitions, each at the place where it occurs last.
def keep_last(items):
    kept = []
    for i, item in enumerate(items):
        if item not in items[i + 1 :]:
            kept.append(item)
    return kept
keep_last([1, 2, 1, 3]) == [2, 1, 3]
keep_last(["a", "a"]) == ["a"]
keep_last([]) == []
---
Write a function `alternate(first, second)` that takes items of two lists in turn, with None where one is too short.
from itertools import zip_longest

def alternate(first, second):
    return [item for pair in zip_longest(first, second) for item in pair]
alternate([1, 3], [2, 4]) == [1, 2, 3, 4]
alternate([1], []) == [1, None]
alternate([], []) == []
---
Write a function `longest_rise(numbers)` that returns the length of the longest stretch in which each number is larger
than the one before.
def longest_rise(numbers):
    best = length = 0
    for i, number in enumerate(numbers):
        length = length + 1 if i > 0 and number > numbers[i - 1] else 1
        best = max(best, length)
    return best
longest_rise([1, 2, 0, 1, 5, 9]) == 4
longest_rise([3, 3]) == 1
longest_rise([]) == 0
---
Write a function `split_at(items, mark)` that cuts a list at each item equal to a mark and leaves the mark out.
def split_at(items, mark):
    parts = [[]]
    for item in items:
        if item == mark:
            parts.append([])
        else:
            parts[-1].append(item)
    return parts
split_at([1, 0, 2, 3], 0) == [[1], [2, 3]]
split_at([0], 0) == [[], []]
split_at([4], 0) == [[4]]
---
Write a function `steps_between(numbers)` that returns the list of differences of neighbours, the later minus the
earlier.
def steps_between(numbers):
    return [numbers[i + 1] - numbers[i] for i in range(len(numbers) - 1)]
steps_between([1, 4, 2]) == [3, -2]
steps_between([7]) == []
steps_between([0.5, 1.5]) == [1.0]
---
Write a function `largest(numbers, count)` that returns the largest numbers, as many as asked for, from large to small.
import heapq

def largest(numbers, count):
    return heapq.nlargest(count, numbers)
largest([4, 9, 1, 7], 2) == [9, 7]
largest([1], 3) == [1]
largest([2, 2, 1], 2) == [2, 2]
---
Write a function `places(scores)` that returns for each score its place; equal scores share a place and the next
places are left out.
def places(scores):
    return [1 + sum(1 for other in scores if other > score) for score in scores]
places([50, 80, 80, 20]) == [3, 1, 1, 4]
places([1]) == [1]
places([]) == []
---
Write a function `by_sign(numbers)` that returns three lists in a tuple: negative numbers, zeros, positive numbers.
def by_sign(numbers):
    negative = [n for n in numbers if n < 0]
    zero = [n for n in numbers if n == 0]
    positive = [n for n in numbers if n > 0]
    return (negative, zero, positive)
by_sign([3, -1, 0, 2]) == ([-1], [0], [3, 2])
by_sign([]) == ([], [], [])
by_sign([0, 0]) == ([], [0, 0], [])
---
Write a function `matches(teams)` that returns the list of all pairs of teams that play each other once, in order.
from itertools import combinations

def matches(teams):
    return list(combinations(teams, 2))
matches(["A", "B", "C"]) == [("A", "B"), ("A", "C"), ("B", "C")]
matches(["A"]) == []
matches([1, 2]) == [(1, 2)]
---
Write a function `put_in_order(numbers, value)` that returns a new sorted list with a value put into a sorted list,
after its equals.
import bisect

def put_in_order(numbers, value):
    place = bisect.bisect_right(numbers, value)
    return numbers[:place] + [value] + numbers[place:]
put_in_order([1, 3, 5], 4) == [1, 3, 4, 5]
put_in_order([], 2) == [2]
put_in_order([2, 2], 1) == [1, 2, 2]
---
Write a function `gaps(numbers)` that returns the sorted whole numbers that are missing between the smallest and the
largest.
def gaps(numbers):
    if not numbers:
        return []
    present = set(numbers)
    return [n for n in range(min(numbers) + 1, max(numbers)) if n not in present]
gaps([1, 2, 5]) == [3, 4]
gaps([4, 3]) == []
gaps([]) == []
---
Write a function `join_ranges(ranges)` that joins (start, end) pairs that overlap or touch and returns them sorted.
def join_ranges(ranges):
    joined = []
    for start, end in sorted(ranges):
        if joined and start <= joined[-1][1]:
            joined[-1] = (joined[-1][0], max(joined[-1][1], end))
        else:
            joined.append((start, end))
    return joined
join_ranges([(5, 7), (1, 3), (2, 4)]) == [(1, 4), (5, 7)]
join_ranges([(1, 5), (2, 3)]) == [(1, 5)]
join_ranges([(1, 2), (2, 3)]) == [(1, 3)]
join_ranges([]) == []
---
Write a function `last_place(items, item)` that returns the last place, from 0, of an item in a list, or None.
def last_place(items, item):
    for i in range(len(items) - 1, -1, -1):
        if items[i] == item:
            return i
    return None
last_place([1, 2, 1], 1) == 2
last_place(["a"], "b") == None
last_place([7, 8], 7) == 0
---
Write a function `seating(guests, tables)` that deals guests to a number of tables in turn and returns one list for
each table.
def seating(guests, tables):
    return [guests[table::tables] for table in range(tables)]
seating(["a", "b", "c", "d", "e"], 2) == [["a", "c", "e"], ["b", "d"]]
seating(["a"], 3) == [["a"], [], []]
seating([], 1) == [[]]
---
Write a function `take_until(numbers, limit)` that returns the numbers from the start for as long as their sum is not
above a limit.
def take_until(numbers, limit):
    taken, total = [], 0
    for number in numbers:
        total += number
        if total > limit:
            break
        taken.append(number)
    return taken
take_until([3, 4, 5], 7) == [3, 4]
take_until([9], 5) == []
take_until([1, 1], 10) == [1, 1]
---
Write a function `recent(items, count)` that returns the last items, newest first, as many as asked for.
from collections import deque

def recent(items, count):
    return list(reversed(deque(items, maxlen=count)))
recent([1, 2, 3, 4], 2) == [4, 3]
recent(["a"], 5) == ["a"]
recent([], 1) == []
"""

DICTS = r"""
Write a function `by_value(mapping)` that returns a dict from each value to the sorted list of its keys.
def by_value(mapping):
    turned = {}
    for key in sorted(mapping):
        turned.setdefault(mapping[key], []).append(key)
    return turned
by_value({"b": 1, "a": 1, "c": 2}) == {1: ["a", "b"], 2: ["c"]}
by_value({}) == {}
by_value({"x": "y"}) == {"y": ["x"]}
---
Write a function `add_counts(first, second)` that returns a dict with the sums of the counts of two dicts.
def add_counts(first, second):
    counts = dict(first)
    for key, count in second.items():
        counts[key] = counts.get(key, 0) + count
    return counts
add_counts({"a": 1}, {"a": 2, "b": 3}) == {"a": 3, "b": 3}
add_counts({}, {"x": 1}) == {"x": 1}
add_counts({}, {}) == {}
---
Write a function `by_length(words)` that returns a dict from length to the list of words of that length.
from collections import defaultdict

def by_length(words):
    groups = defaultdict(list)
    for word in words:
        groups[len(word)].append(word)
    return dict(groups)
by_length(["a", "to", "be"]) == {1: ["a"], 2: ["to", "be"]}
by_length([]) == {}
by_length(["xyz"]) == {3: ["xyz"]}
---
Write a function `look_up(data, path, default)` that follows keys such as "a.b.c" into nested dicts and returns a
default if one is missing.
def look_up(data, path, default):
    for key in path.split("."):
        if not isinstance(data, dict) or key not in data:
            return default
        data = data[key]
    return data
look_up({"a": {"b": 1}}, "a.b", 0) == 1
look_up({"a": 1}, "a.b", 0) == 0
look_up({}, "x", None) == None
---
Write a function `flat_keys(data)` that turns nested dicts into one dict whose keys are joined with dots.
def flat_keys(data, prefix=""):
    flat = {}
    for key, value in data.items():
        if isinstance(value, dict):
            flat.update(flat_keys(value, prefix + key + "."))
        else:
            flat[prefix + key] = value
    return flat
flat_keys({"a": {"b": 1, "c": {"d": 2}}, "e": 3}) == {"a.b": 1, "a.c.d": 2, "e": 3}
flat_keys({}) == {}
flat_keys({"x": {}}) == {}
---
Write a function `word_counts(text)` that returns a dict from each word of a text in lower case to how often it occurs.
from collections import Counter

def word_counts(text):
    return dict(Counter(text.lower().split()))
word_counts("To be or not to be") == {"to": 2, "be": 2, "or": 1, "not": 1}
word_counts("") == {}
word_counts("a A") == {"a": 2}
---
Write a function `stock_after(stock, orders)` that returns the stock after (item, count) orders; an order that cannot
be met is left out.
def stock_after(stock, orders):
    left = dict(stock)
    for item, count in orders:
        if left.get(item, 0) >= count:
            left[item] -= count
    return left
stock_after({"pen": 5}, [("pen", 2), ("pen", 4)]) == {"pen": 3}
stock_after({"pen": 1}, [("cup", 1)]) == {"pen": 1}
stock_after({"a": 2}, [("a", 2)]) == {"a": 0}
---
Write a function `letter_places(word)` that returns a dict from each letter to the list of its places, counted from 1.
def letter_places(word):
    places = {}
    for number, letter in enumerate(word, start=1):
        places.setdefault(letter, []).append(number)
    return places
letter_places("noon") == {"n": [1, 4], "o": [2, 3]}
letter_places("a") == {"a": [1]}
letter_places("") == {}
---
Write a function `raise_prices(prices, percent)` that returns a dict with all prices raised by a percentage, with two
places.
def raise_prices(prices, percent):
    return {item: round(price * (100 + percent) / 100, 2) for item, price in prices.items()}
raise_prices({"tea": 2.0, "cake": 3.5}, 10) == {"tea": 2.2, "cake": 3.85}
raise_prices({}, 5) == {}
raise_prices({"x": 100}, -50) == {"x": 50.0}
---
Write a function `tally(votes)` that returns a list of (name, votes) pairs, the most votes first, equals by name.
from collections import Counter

def tally(votes):
    return sorted(Counter(votes).items(), key=lambda pair: (-pair[1], pair[0]))
tally(["bo", "al", "bo"]) == [("bo", 2), ("al", 1)]
tally(["b", "a"]) == [("a", 1), ("b", 1)]
tally([]) == []
---
Write a function `changed(old, new)` that returns the set of keys whose values differ between two dicts or that only
one of them has.
def changed(old, new):
    different = {key for key in old if key not in new or old[key] != new[key]}
    return different | (set(new) - set(old))
changed({"a": 1, "b": 2}, {"a": 1, "b": 3, "c": 4}) == {"b", "c"}
changed({}, {}) == set()
changed({"x": None}, {}) == {"x"}
---
Write a function `grades(points)` that returns a dict from name to "A" (90 or more), "B" (75 or more), "C" (50 or
more) or "F".
def grades(points):
    marks = {}
    for name, score in points.items():
        if score >= 90:
            marks[name] = "A"
        elif score >= 75:
            marks[name] = "B"
        else:
            marks[name] = "C" if score >= 50 else "F"
    return marks
grades({"Ida": 90, "Ole": 89, "Per": 50}) == {"Ida": "A", "Ole": "B", "Per": "C"}
grades({"Pia": 49, "Bo": 75}) == {"Pia": "F", "Bo": "B"}
grades({}) == {}
"""

DATES = r"""
Write a function `days_until(start, end)` that returns the number of days from one date to another, both texts like
"2024-02-28".
from datetime import date

def days_until(start, end):
    return (date.fromisoformat(end) - date.fromisoformat(start)).days
days_until("2024-02-28", "2024-03-01") == 2
days_until("2023-12-31", "2024-01-01") == 1
days_until("2024-05-05", "2024-05-01") == -4
---
Write a function `weekday(day)` that returns the English name of the weekday of a date like "2024-07-04".
from datetime import date

def weekday(day):
    names = ["Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday"]
    return names[date.fromisoformat(day).weekday()]
weekday("2024-07-04") == "Thursday"
weekday("2000-01-01") == "Saturday"
weekday("2023-10-01") == "Sunday"
---
Write a function `add_months(day, months)` that adds months to a date like "2024-01-31"; a day that the month lacks
becomes its last.
import calendar
from datetime import date

def add_months(day, months):
    start = date.fromisoformat(day)
    index = start.year * 12 + start.month - 1 + months
    year, month = index // 12, index % 12 + 1
    last = calendar.monthrange(year, month)[1]
    return date(year, month, min(start.day, last)).isoformat()
add_months("2024-01-31", 1) == "2024-02-29"
add_months("2023-11-15", 3) == "2024-02-15"
add_months("2024-03-10", -3) == "2023-12-10"
---
Write a function `month_length(year, month)` that returns how many days a month has.
import calendar

def month_length(year, month):
    return calendar.monthrange(year, month)[1]
month_length(2024, 2) == 29
month_length(2023, 2) == 28
month_length(2024, 4) == 30
---
Write a function `age_on(born, day)` that returns the age in whole years on a day; both are texts like "1990-05-17".
from datetime import date

def age_on(born, day):
    birth, today = date.fromisoformat(born), date.fromisoformat(day)
    had_birthday = (today.month, today.day) >= (birth.month, birth.day)
    return today.year - birth.year - (0 if had_birthday else 1)
age_on("1990-05-17", "2020-05-16") == 29
age_on("1990-05-17", "2020-05-17") == 30
age_on("2000-12-31", "2001-01-01") == 0
---
Write a function `mondays(year, month)` that returns the list of days of a month, as numbers, that are Mondays.
import calendar

def mondays(year, month):
    return [week[0] for week in calendar.monthcalendar(year, month) if week[0] != 0]
mondays(2024, 1) == [1, 8, 15, 22, 29]
mondays(2024, 2) == [5, 12, 19, 26]
mondays(2023, 10) == [2, 9, 16, 23, 30]
---
Write a function `quarter(day)` that returns the quarter of a date like "2024-05-09" as text like "2024-Q2".
def quarter(day):
    year, month, _ = day.split("-")
    return f"{year}-Q{(int(month) - 1) // 3 + 1}"
quarter("2024-05-09") == "2024-Q2"
quarter("1999-12-31") == "1999-Q4"
quarter("2021-03-31") == "2021-Q1"
---
Write a function `minutes_between(start, end)` that returns the minutes from one time like "22:30" to the next time it
is the other.
def minutes_between(start, end):
    first = int(start[:2]) * 60 + int(start[3:])
    second = int(end[:2]) * 60 + int(end[3:])
    return (second - first) % (24 * 60)
minutes_between("22:30", "00:15") == 105
minutes_between("08:00", "09:30") == 90
minutes_between("10:00", "10:00") == 0
---
Write a function `calendar_week(day)` that returns the ISO year and week of a date like "2024-12-30" as a tuple.
from datetime import date

def calendar_week(day):
    year, week, _ = date.fromisoformat(day).isocalendar()
    return (year, week)
calendar_week("2024-12-30") == (2025, 1)
calendar_week("2024-01-01") == (2024, 1)
calendar_week("2021-01-03") == (2020, 53)
---
Write a function `iso_from_german(day)` that turns a date like "5.3.2024" into one like "2024-03-05".
from datetime import datetime

def iso_from_german(day):
    return datetime.strptime(day, "%d.%m.%Y").strftime("%Y-%m-%d")
iso_from_german("5.3.2024") == "2024-03-05"
iso_from_german("31.12.1999") == "1999-12-31"
iso_from_german("01.10.2020") == "2020-10-01"
---
Write a function `workdays(start, end)` that returns how many days from Monday to Friday there are between two ISO
dates, both included.
from datetime import date, timedelta

def workdays(start, end):
    day, last = date.fromisoformat(start), date.fromisoformat(end)
    count = 0
    while day <= last:
        if day.weekday() < 5:
            count += 1
        day += timedelta(days=1)
    return count
workdays("2024-01-01", "2024-01-07") == 5
workdays("2024-01-06", "2024-01-07") == 0
workdays("2024-01-05", "2024-01-08") == 2
---
Write a function `clock(seconds)` that returns seconds as text like "1:01:01", hours first.
def clock(seconds):
    minutes, seconds = divmod(seconds, 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{seconds:02d}"
clock(3661) == "1:01:01"
clock(59) == "0:00:59"
clock(36000) == "10:00:00"
---
Write a function `next_bus(times, now)` that returns the first of the times like "08:15" that is not before now, or
None.
def next_bus(times, now):
    later = [time for time in sorted(times) if time >= now]
    return later[0] if later else None
next_bus(["09:00", "08:15"], "08:00") == "08:15"
next_bus(["08:15"], "08:15") == "08:15"
next_bus(["07:00"], "08:00") == None
"""

MATRICES = r"""
Write a function `turn_table(rows)` that returns the columns of a table as lists.
def turn_table(rows):
    return [list(column) for column in zip(*rows)]
turn_table([[1, 2], [3, 4], [5, 6]]) == [[1, 3, 5], [2, 4, 6]]
turn_table([[7]]) == [[7]]
turn_table([]) == []
---
Write a function `diagonals(matrix)` that returns the sums of both diagonals of a square matrix as a tuple, the
falling one first.
def diagonals(matrix):
    size = len(matrix)
    falling = sum(matrix[i][i] for i in range(size))
    rising = sum(matrix[i][size - 1 - i] for i in range(size))
    return (falling, rising)
diagonals([[1, 2], [3, 4]]) == (5, 5)
diagonals([[1, 0, 2], [0, 5, 0], [3, 0, 4]]) == (10, 10)
diagonals([[9]]) == (9, 9)
diagonals([[1, 7], [3, 4]]) == (5, 10)
---
Write a function `product(left, right)` that returns the product of two matrices given as lists of rows.
def product(left, right):
    columns = list(zip(*right))
    return [[sum(a * b for a, b in zip(row, column)) for column in columns] for row in left]
product([[1, 2]], [[3], [4]]) == [[11]]
product([[1, 0], [0, 1]], [[5, 6], [7, 8]]) == [[5, 6], [7, 8]]
product([[2], [3]], [[1, 4]]) == [[2, 8], [3, 12]]
---
Write a function `quarter_turn(matrix)` that turns a matrix clockwise by a quarter.
def quarter_turn(matrix):
    return [list(row) for row in zip(*matrix[::-1])]
quarter_turn([[1, 2], [3, 4]]) == [[3, 1], [4, 2]]
quarter_turn([[1, 2, 3]]) == [[1], [2], [3]]
quarter_turn([[1], [2]]) == [[2, 1]]
---
Write a function `border_sum(matrix)` that returns the sum of the outermost numbers of a matrix.
def border_sum(matrix):
    total = 0
    for i, row in enumerate(matrix):
        for j, number in enumerate(row):
            if i in (0, len(matrix) - 1) or j in (0, len(row) - 1):
                total += number
    return total
border_sum([[1, 1, 1], [1, 9, 1], [1, 1, 1]]) == 8
border_sum([[5]]) == 5
border_sum([[1, 2], [3, 4]]) == 10
---
Write a function `chessboard(size)` that returns a square board of 0 and 1 in turn; the top left field is 1.
def chessboard(size):
    return [[(row + column + 1) % 2 for column in range(size)] for row in range(size)]
chessboard(2) == [[1, 0], [0, 1]]
chessboard(1) == [[1]]
chessboard(3) == [[1, 0, 1], [0, 1, 0], [1, 0, 1]]
---
Write a function `spiral(matrix)` that returns the numbers of a matrix from outside to inside, clockwise, from the top
left.
def spiral(matrix):
    order = []
    rows = [list(row) for row in matrix]
    while rows:
        order += rows.pop(0)
        rows = [list(row) for row in zip(*rows)][::-1]
    return order
spiral([[1, 2, 3], [4, 5, 6], [7, 8, 9]]) == [1, 2, 3, 6, 9, 8, 7, 4, 5]
spiral([[1, 2], [3, 4]]) == [1, 2, 4, 3]
spiral([]) == []
---
Write a function `column_peaks(matrix)` that returns the largest number of each column.
def column_peaks(matrix):
    return [max(row[j] for row in matrix) for j in range(len(matrix[0]))]
column_peaks([[1, 8], [5, 2]]) == [5, 8]
column_peaks([[3, 1, 2]]) == [3, 1, 2]
column_peaks([[-1], [-4]]) == [-1]
---
Write a function `mirrored(matrix)` that returns whether a square matrix stays the same when rows and columns are
swapped.
def mirrored(matrix):
    size = len(matrix)
    return all(matrix[i][j] == matrix[j][i] for i in range(size) for j in range(i))
mirrored([[1, 2], [2, 1]]) == True
mirrored([[1, 2], [3, 1]]) == False
mirrored([[4]]) == True
mirrored([[1, 2, 3], [2, 1, 4], [3, 5, 1]]) == False
---
Write a function `mines_near(grid, row, column)` that returns how many of the up to eight neighbours of a field are 1.
def mines_near(grid, row, column):
    count = 0
    for i in range(max(row - 1, 0), min(row + 2, len(grid))):
        for j in range(max(column - 1, 0), min(column + 2, len(grid[0]))):
            if (i, j) != (row, column):
                count += grid[i][j]
    return count
mines_near([[1, 1], [1, 1]], 0, 0) == 3
mines_near([[0, 0, 1], [0, 1, 0], [0, 0, 1]], 1, 1) == 2
mines_near([[1]], 0, 0) == 0
---
Write a function `pooled(matrix)` that returns a matrix half as wide and high, each number the sum of a square of four.
def pooled(matrix):
    return [
        [sum(matrix[i + a][j + b] for a in (0, 1) for b in (0, 1)) for j in range(0, len(matrix[0]), 2)]
        for i in range(0, len(matrix), 2)
    ]
pooled([[1, 2], [3, 4]]) == [[10]]
pooled([[1, 1, 2, 2], [1, 1, 2, 2]]) == [[4, 8]]
pooled([[1, 0], [0, 0], [0, 5], [5, 0]]) == [[1], [10]]
"""

PARSING = r"""
Write a function `read_pairs(text)` that reads text like "a=1; b=2" into a dict from name to whole number.
def read_pairs(text):
    pairs = {}
    for part in text.split(";"):
        if "=" in part:
            name, value = part.split("=", 1)
            pairs[name.strip()] = int(value)
    return pairs
read_pairs("a=1; b=2") == {"a": 1, "b": 2}
read_pairs("") == {}
read_pairs("x = -5;") == {"x": -5}
---
Write a function `read_minutes(text)` that reads a duration like "1h 30m", "45m" or "2h" and returns its minutes.
import re

def read_minutes(text):
    hours = re.search(r"(\d+)\s*h", text)
    minutes = re.search(r"(\d+)\s*m", text)
    return (int(hours[1]) * 60 if hours else 0) + (int(minutes[1]) if minutes else 0)
read_minutes("1h 30m") == 90
read_minutes("45m") == 45
read_minutes("2h") == 120
---
Write a function `csv_fields(line)` that returns the fields of one line of CSV; fields in quotes may have commas.
import csv
import io

def csv_fields(line):
    return next(csv.reader(io.StringIO(line)), [])
csv_fields('a,"b,c",d') == ["a", "b,c", "d"]
csv_fields("") == []
csv_fields("x,,y") == ["x", "", "y"]
---
Write a function `parameters(address)` that returns a dict of the parameters of a web address, the last value of each.
from urllib.parse import parse_qsl, urlsplit

def parameters(address):
    return dict(parse_qsl(urlsplit(address).query))
parameters("https://example.org/?q=red+tea&page=2") == {"q": "red tea", "page": "2"}
parameters("https://example.org") == {}
parameters("/x?a=1&a=2") == {"a": "2"}
---
Write a function `newest(versions)` that returns the highest of versions such as "1.10.2", or None.
def newest(versions):
    return max(versions, key=lambda version: [int(part) for part in version.split(".")], default=None)
newest(["1.9", "1.10"]) == "1.10"
newest(["2.0.1", "2.0"]) == "2.0.1"
newest([]) == None
---
Write a function `read_pages(text)` that returns the list of pages of text like "1-3,5".
def read_pages(text):
    pages = []
    for part in text.split(","):
        first, _, last = part.partition("-")
        pages.extend(range(int(first), int(last or first) + 1))
    return pages
read_pages("1-3,5") == [1, 2, 3, 5]
read_pages("7") == [7]
read_pages("2-2,9-10") == [2, 9, 10]
---
Write a function `postfix(text)` that works out a term of whole numbers in postfix form such as "3 4 + 2 *" with + - *.
def postfix(text):
    stack = []
    for token in text.split():
        if token in ("+", "-", "*"):
            right, left = stack.pop(), stack.pop()
            stack.append({"+": left + right, "-": left - right, "*": left * right}[token])
        else:
            stack.append(int(token))
    return stack[-1]
postfix("3 4 + 2 *") == 14
postfix("9 5 -") == 4
postfix("8") == 8
---
Write a function `deepest(text)` that returns how deep round brackets are nested, or None if they do not match.
def deepest(text):
    depth = best = 0
    for sign in text:
        if sign == "(":
            depth += 1
            best = max(best, depth)
        elif sign == ")":
            depth -= 1
            if depth < 0:
                return None
    return best if depth == 0 else None
deepest("(a(b))") == 2
deepest(")(") == None
deepest("none") == 0
deepest("((x)") == None
---
Write a function `read_settings(text)` that reads lines "[section]" and "name: value" into a dict of dicts of text.
def read_settings(text):
    settings, section = {}, None
    for line in text.splitlines():
        line = line.strip()
        if line.startswith("[") and line.endswith("]"):
            section = settings.setdefault(line[1:-1], {})
        elif ":" in line and section is not None:
            name, value = line.split(":", 1)
            section[name.strip()] = value.strip()
    return settings
read_settings("[web]\nport: 80\nhost: a:b") == {"web": {"port": "80", "host": "a:b"}}
read_settings("lost: 1") == {}
read_settings("[x]\n[y]\nk: v") == {"x": {}, "y": {"k": "v"}}
---
Write a function `json_names(text)` that returns the sorted values of "name" in a JSON list of objects; objects
without it are left out.
import json

def json_names(text):
    return sorted(item["name"] for item in json.loads(text) if "name" in item)
json_names('[{"name": "Bo"}, {"name": "Al"}]') == ["Al", "Bo"]
json_names("[]") == []
json_names('[{"id": 1}, {"name": "Cy", "id": 2}]') == ["Cy"]
---
Write a function `colour(code)` that turns a colour like "#ff8000" into a tuple of three numbers.
def colour(code):
    digits = code.lstrip("#")
    return tuple(int(digits[i : i + 2], 16) for i in range(0, 6, 2))
colour("#ff8000") == (255, 128, 0)
colour("000000") == (0, 0, 0)
colour("#0A0B0C") == (10, 11, 12)
---
Write a function `find_numbers(text)` that returns all numbers of a text as floats; they may have a sign and decimals.
import re

def find_numbers(text):
    return [float(number) for number in re.findall(r"-?\d+(?:\.\d+)?", text)]
find_numbers("from -3 to 4.5 degrees") == [-3.0, 4.5]
find_numbers("none") == []
find_numbers("7") == [7.0]
---
Write a function `mail_domains(text)` that returns the set of domains of the mail addresses in a text, in lower case.
import re

def mail_domains(text):
    return {domain.lower() for domain in re.findall(r"[\w.]+@([\w-]+(?:\.[\w-]+)+)", text)}
mail_domains("a@x.org, b.c@Y.com!") == {"x.org", "y.com"}
mail_domains("no address @ here") == set()
mail_domains("me@mail.x.org me@mail.x.org") == {"mail.x.org"}
---
Write a function `table_cells(line)` that returns the cells of a line of a Markdown table like "| a | b |" without
spaces around them.
def table_cells(line):
    return [cell.strip() for cell in line.strip().split("|")[1:-1]]
table_cells("| a | b |") == ["a", "b"]
table_cells("|x|") == ["x"]
table_cells("| | y z |") == ["", "y z"]
"""

ROWS = r"""
Write a function `total_by_region(rows)` that returns a dict from region to the sum of amounts; rows have "region" and
"amount".
def total_by_region(rows):
    totals = {}
    for row in rows:
        totals[row["region"]] = totals.get(row["region"], 0) + row["amount"]
    return totals
total_by_region([{"region": "N", "amount": 2}, {"region": "S", "amount": 5}]) == {"N": 2, "S": 5}
total_by_region([{"region": "N", "amount": 2}, {"region": "N", "amount": 3}]) == {"N": 5}
total_by_region([]) == {}
total_by_region([{"region": "E", "amount": 1.5}]) == {"E": 1.5}
---
Write a function `mean_price(rows)` that returns the average of "price" of the rows with two places, or None without
rows.
def mean_price(rows):
    if not rows:
        return None
    return round(sum(row["price"] for row in rows) / len(rows), 2)
mean_price([{"price": 1.0}, {"price": 2.5}]) == 1.75
mean_price([]) == None
mean_price([{"price": 10}, {"price": 10}, {"price": 11}]) == 10.33
---
Write a function `adults(people)` that returns the sorted names of people with "age" 18 or more; people have "name"
and "age".
def adults(people):
    return sorted(person["name"] for person in people if person["age"] >= 18)
adults([{"name": "Ute", "age": 18}, {"name": "Jo", "age": 17}, {"name": "Ali", "age": 40}]) == ["Ali", "Ute"]
adults([]) == []
adults([{"name": "Kim", "age": 3}]) == []
---
Write a function `best_seller(rows)` that returns the "product" with the largest "sold" over all rows, the first in
the alphabet of equals.
def best_seller(rows):
    sold = {}
    for row in rows:
        sold[row["product"]] = sold.get(row["product"], 0) + row["sold"]
    return min(sold, key=lambda product: (-sold[product], product)) if sold else None
best_seller([{"product": "pen", "sold": 3}, {"product": "cup", "sold": 4}, {"product": "pen", "sold": 2}]) == "pen"
best_seller([{"product": "b", "sold": 1}, {"product": "a", "sold": 1}]) == "a"
best_seller([]) == None
---
Write a function `people_per_city(rows)` that returns a dict from "city" to how many rows have it.
from collections import Counter

def people_per_city(rows):
    return dict(Counter(row["city"] for row in rows))
people_per_city([{"city": "Rome"}, {"city": "Oslo"}, {"city": "Rome"}]) == {"Rome": 2, "Oslo": 1}
people_per_city([]) == {}
people_per_city([{"city": "Bern", "name": "x"}]) == {"Bern": 1}
---
Write a function `orders_with_names(customers, orders)` that returns (name, total) for orders with "customer" and
"total", by customers' "id" and "name".
def orders_with_names(customers, orders):
    names = {customer["id"]: customer["name"] for customer in customers}
    return [(names[order["customer"]], order["total"]) for order in orders]
orders_with_names([{"id": 1, "name": "Al"}], [{"customer": 1, "total": 9}]) == [("Al", 9)]
orders_with_names([{"id": 1, "name": "Al"}], []) == []
orders_with_names([{"id": 1, "name": "A"}, {"id": 2, "name": "B"}], [{"customer": 2, "total": 5}]) == [("B", 5)]
---
Write a function `revenue(rows)` that returns the sum of "price" times "quantity" of the rows with two places.
def revenue(rows):
    return round(sum(row["price"] * row["quantity"] for row in rows), 2)
revenue([{"price": 1.1, "quantity": 3}, {"price": 2.0, "quantity": 1}]) == 5.3
revenue([]) == 0
revenue([{"price": 0.99, "quantity": 100}]) == 99.0
---
Write a function `latest_first(rows)` that returns the "title" of the rows sorted by "date" like "2024-05-01", the
latest first.
def latest_first(rows):
    ordered = sorted(rows, key=lambda row: row["date"], reverse=True)
    return [row["title"] for row in ordered]
latest_first([{"title": "a", "date": "2023-01-01"}, {"title": "b", "date": "2024-01-01"}]) == ["b", "a"]
latest_first([]) == []
latest_first([{"title": "x", "date": "2020-10-01"}, {"title": "y", "date": "2020-09-30"}]) == ["x", "y"]
---
Write a function `cross_table(rows)` that returns a dict from "month" to a dict from "kind" to the sum of "value".
def cross_table(rows):
    table = {}
    for row in rows:
        line = table.setdefault(row["month"], {})
        line[row["kind"]] = line.get(row["kind"], 0) + row["value"]
    return table
cross_table([{"month": 1, "kind": "rent", "value": 5}, {"month": 1, "kind": "rent", "value": 2}]) == {1: {"rent": 7}}
cross_table([{"month": 1, "kind": "a", "value": 1}, {"month": 2, "kind": "a", "value": 3}]) == {1: {"a": 1}, 2: {"a": 3}}
cross_table([]) == {}
---
Write a function `youngest(rows)` that returns the set of "name" of those with the latest year "born".
def youngest(rows):
    latest = max((row["born"] for row in rows), default=None)
    return {row["name"] for row in rows if row["born"] == latest}
youngest([{"name": "A", "born": 1990}, {"name": "B", "born": 2001}, {"name": "C", "born": 2001}]) == {"B", "C"}
youngest([]) == set()
youngest([{"name": "Z", "born": 1950}]) == {"Z"}
---
Write a function `without_mail(rows)` that returns the "id" of the rows whose "mail" is None or empty.
def without_mail(rows):
    return [row["id"] for row in rows if not row["mail"]]
without_mail([{"id": 1, "mail": "a@x.org"}, {"id": 2, "mail": None}, {"id": 3, "mail": ""}]) == [2, 3]
without_mail([]) == []
without_mail([{"id": 7, "mail": "b@x.org"}]) == []
---
Write a function `mean_by_subject(rows)` that returns a dict from "subject" to the mean of "points" with one place.
from statistics import mean

def mean_by_subject(rows):
    points = {}
    for row in rows:
        points.setdefault(row["subject"], []).append(row["points"])
    return {subject: round(mean(values), 1) for subject, values in points.items()}
mean_by_subject([{"subject": "art", "points": 8}, {"subject": "art", "points": 5}]) == {"art": 6.5}
mean_by_subject([]) == {}
mean_by_subject([{"subject": "a", "points": 1}, {"subject": "b", "points": 2}]) == {"a": 1, "b": 2}
---
Write a function `late_parcels(rows)` that returns the "parcel" of rows delivered more than 3 days after they were
sent ("sent", "delivered": ISO dates).
from datetime import date

def late_parcels(rows):
    late = []
    for row in rows:
        days = (date.fromisoformat(row["delivered"]) - date.fromisoformat(row["sent"])).days
        if days > 3:
            late.append(row["parcel"])
    return late
late_parcels([{"parcel": "p1", "sent": "2024-02-27", "delivered": "2024-03-02"}]) == ["p1"]
late_parcels([{"parcel": "p2", "sent": "2024-05-01", "delivered": "2024-05-04"}]) == []
late_parcels([]) == []
---
Write a function `cheapest(rows)` that returns a dict from "category" to the "item" with the lowest "price", the first
of equals.
def cheapest(rows):
    best = {}
    for row in rows:
        known = best.get(row["category"])
        if known is None or row["price"] < known["price"]:
            best[row["category"]] = row
    return {category: row["item"] for category, row in best.items()}
cheapest([{"category": "tea", "item": "mint", "price": 3}, {"category": "tea", "item": "oat", "price": 2}]) == {"tea": "oat"}
cheapest([{"category": "c", "item": "x", "price": 1}, {"category": "c", "item": "y", "price": 1}]) == {"c": "x"}
cheapest([]) == {}
---
Write a function `hours_worked(rows)` that returns a dict from "employee" to the sum of hours; rows have "from" and
"to" as whole hours.
from collections import defaultdict

def hours_worked(rows):
    hours = defaultdict(int)
    for row in rows:
        hours[row["employee"]] += row["to"] - row["from"]
    return dict(hours)
hours_worked([{"employee": "Mia", "from": 9, "to": 12}, {"employee": "Mia", "from": 13, "to": 17}]) == {"Mia": 7}
hours_worked([]) == {}
hours_worked([{"employee": "A", "from": 8, "to": 9}, {"employee": "B", "from": 1, "to": 3}]) == {"A": 1, "B": 2}
---
Write a function `warmest(rows)` that returns ("day", "celsius") of the warmest row as a tuple, the earlier row of
equals, or None.
def warmest(rows):
    if not rows:
        return None
    best = max(rows, key=lambda row: row["celsius"])
    return (best["day"], best["celsius"])
warmest([{"day": "Mon", "celsius": 18.5}, {"day": "Tue", "celsius": 21.0}]) == ("Tue", 21.0)
warmest([{"day": "Sat", "celsius": 5}, {"day": "Sun", "celsius": 5}]) == ("Sat", 5)
warmest([]) == None
---
Write a function `balance(rows)` that returns the sum of "amount" of rows whose "kind" is "in" minus that of rows
whose "kind" is "out".
def balance(rows):
    total = 0
    for row in rows:
        total += row["amount"] if row["kind"] == "in" else -row["amount"]
    return total
balance([{"kind": "in", "amount": 10}, {"kind": "out", "amount": 4}]) == 6
balance([]) == 0
balance([{"kind": "out", "amount": 3}]) == -3
---
Write a function `repeated_orders(rows)` that returns the sorted list of "customer" values that occur in at least 2
rows.
from collections import Counter

def repeated_orders(rows):
    counts = Counter(row["customer"] for row in rows)
    return sorted(customer for customer, count in counts.items() if count >= 2)
repeated_orders([{"customer": "b"}, {"customer": "a"}, {"customer": "b"}]) == ["b"]
repeated_orders([]) == []
repeated_orders([{"customer": "z"}, {"customer": "a"}, {"customer": "a"}, {"customer": "z"}]) == ["a", "z"]
"""


@dataclass(frozen=True)
class Function:
    """A function that is asked for.

    Attributes:
        name: What it is called.
        task: The question.
        source: A right program.
        examples: Arguments, and what the function returns for them.
    """

    name: str
    task: str
    source: str
    examples: tuple[Example, ...]


def read(corpus: str) -> list[Function]:
    """The functions of a text of entries."""
    return [_function(entry.strip()) for entry in corpus.split("\n---\n")]


def _function(entry: str) -> Function:
    start = re.search(r"^(import|from|def) .*", entry, flags=re.MULTILINE)
    named = re.search(r"`(\w+)\(", entry)
    assert start, f"there is no program in: {entry}"
    assert named, f"no function is named in: {entry}"
    task, program = " ".join(entry[: start.start()].split()), entry[start.start() :]
    calls = [node for node in ast.parse(program).body if isinstance(node, ast.Expr)]
    source = "\n".join(program.splitlines()[: calls[0].lineno - 1]).rstrip() + "\n"
    return Function(named[1], task, source, tuple(_example(call.value) for call in calls))


def _example(call: ast.expr) -> Example:
    match call:
        case ast.Compare(left=ast.Call(args=args), ops=[ast.Eq()], comparators=[expected]):
            return tuple(ast.literal_eval(arg) for arg in args), ast.literal_eval(expected)
    raise ValueError(f"An example is `call == value`, not {ast.unparse(call)}")


FUNCTIONS: tuple[Function, ...] = tuple(
    function
    for corpus in (TEXT, NUMBERS, LISTS, DICTS, DATES, MATRICES, PARSING, ROWS)
    for function in read(corpus)
)
