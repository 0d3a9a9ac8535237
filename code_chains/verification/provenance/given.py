"""What was given to a program: the numbers and words of its question, and what follows from them."""

from __future__ import annotations

import itertools
import math
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from enum import Enum
from functools import cached_property

from code_chains.analysis.columns import YEARS
from code_chains.analysis.dotted_names import words
from code_chains.inputs.text import folded
from code_chains.language.vocabulary import either, pattern, vocabulary
from code_chains.verification.number_words import stated_in_words
from code_chains.verification.numbers import (
    WRITTEN_NUMBER,
    apart,
    ascii_digits,
    mantissa,
    possible_values,
)

_MAX_TEXT_CHARS, _MAX_NUMBERS, _MAX_PAIRED = 50_000, 60, 30
_UNITS = (60.0, 3600.0, 24.0, 7.0, 12.0, 365.0, 52.0, 30.0, 2.0, 4.0)
_CLOCK = re.compile(r"(?<!\d)(\d{1,2}):(\d{2})")
_MIXED = re.compile(r"(?<!\d)(\d{1,6})[ -](\d{1,3})/(\d{1,3})(?!\d)")
_FRACTION = re.compile(r"(?<![\d/])(\d{1,3})/(\d{1,3})(?![\d/])")
_WORDS = vocabulary("given")
_PERCENT = pattern(_WORDS["percent"])
_SCALES = (1.0, 100.0, 0.01, 1e3, 1e-3, 1e6, 1e-6, 1e9, 1e-9)
_PARTS = pattern(_WORDS["parts"])
_DIGITS_OF_OTHER_BASES = re.compile(r"\b(?:0[xX])?([0-9A-F]{2,8}|[0-9a-f]{2,8})\b")
_OTHER_BASE = pattern(_WORDS["other_base"])
_WITHOUT_ZERO = re.compile(r"(?<![\w.,])\.\d+")
_WORD = re.compile(r"[^\W\d_]{2,}")
_OPENING_WORDS = words("the it yes no in at on an there this that with they their have")
_SPELLED = re.compile(r"(?<![^\W_])(?:'([^'\n]{2,60})'|\"([^\"\n]{2,60})\"|([A-Z]{3,40})(?![^\W_]))")
"""Words in quotation marks or in capitals, whose letters may be counted."""
_ORDINARY = re.compile(r"\d+(?:\.\d+)?")
_CONSTANTS = """
0 0.5 1 2 7 24 60 3600 86400 1440 365 366 365.25 365.2425 52 28 29 30 31 1900 1970 90 180 270 360 400
26 65 97 128 255 256 512 1024 2048 4096 65536 1e-9 1e-6 1e6 1e9 1e12 1000000007
3.14 3.1416 3.14159 3.141592 3.1415926 3.14159265 3.141592653589793 6.2832 2.718 2.71828 2.718281828459045 1.618
273.15 32 1.8 9.8 9.81 9.80665 299792458 299792.458 3e8 6.022e23 6.02214076e23 6.674e-11 6.6743e-11 6.626e-34
1.38e-23 1.380649e-23 8.314 101325 4.184 4.186 4186 22.4 1.602e-19 6371
2.54 30.48 0.3048 0.9144 91.44 1.609 1.6093 1.60934 1.609344 1609.34 1609.344 0.621371 0.6214 3.28084 3.281 39.37
5280 1760 63360 1.852 1.15078 0.4536 0.453592 0.45359237 2.2046 2.20462 2.205 28.35 28.3495
3.785 3.78541 3.785411784 0.2642 0.264172
3.6 343 1.62 4184 4.33 4.345 235.2 235.215 4.54609 4.93 14.787 236.588 29.5735 33.8 33.814 745.7 735.5 0.7457
1852 6.35029 4046.86 4047 0.404686 2.47105 2.58999 10.7639 0.092903 0.836127 28.3168 16.3871 0.568261 158.987
14.5038 6.89476 133.322 760 1055.06 3412.14 4.44822 31.1035 9.4607e15 9.461e12 149597870.7 1.496e8 365.256 52.1775
0.44704 0.0689476 0.7355 3.6e6 1048576 0.2126 0.7152 0.0722 0.299 0.587 0.114 0.333 0.3333 0.667 0.6667
1.008 12.011 14.007 15.999 22.99 35.45 55.845 18.015 44.01 96485 1.96 1.645 2.576 2.58
"""
"""Constants of the calendar, computing, mathematics, physics and units, which need no source."""
_KNOWN = frozenset(map(float, _CONSTANTS.split()))
_ROUNDED = frozenset(value for value in _KNOWN if value % 1 and float(f"{value:.3g}") != value)
"""Those that are rounded to four digits or more: a program may write further ones."""
_OFTEN = "14 16 42 99 200 500 0.01 0.025 0.05 0.1 0.2 0.25 0.75 0.95 0.975 0.99 1.5 2.5 97.5"
_COMMON = frozenset([*map(float, range(5, 101, 5)), *map(float, _OFTEN.split())])
"""Numbers that stand in programs of all kinds, so that they say little."""
_IMPLIED = {either(words): tuple(numbers) for words, numbers in _WORDS["implied"]}
"""Words that imply limits, as far as they are common."""
_FACTS = {either(words): tuple(numbers) for words, numbers in _WORDS["facts"]}
"""What everybody knows of what a question is about."""
_MAX_SMALL, _MAX_SPELLED = 12, 5


class Origin(Enum):
    """Where a constant of a program comes from."""

    GIVEN = "given"
    DERIVED = "derived"
    KNOWN = "known"
    WEAK = "weak"
    UNKNOWN = "unknown"


class Given:
    """The numbers and words that a program may use without inventing anything.

    Args:
        texts: The question, the conversation before it, and what else was given as text.
        examples: Text whose values belong to other tasks.
    """

    def __init__(self, *texts: str, examples: str = "") -> None:
        self._text = "\n".join(text[:_MAX_TEXT_CHARS] for text in texts)
        self._examples = examples[:_MAX_TEXT_CHARS]

    @cached_property
    def stated(self) -> list[float]:
        """The numbers that are stated, in digits or in words, each once."""
        texts = (written_numbers, stated_in_words, _of_clocks, _of_other_bases, _of_letters)
        stated = itertools.chain.from_iterable(read(self._text) for read in texts)
        return list(dict.fromkeys(itertools.islice(stated, _MAX_NUMBERS)))

    @cached_property
    def numbers(self) -> list[float]:
        """The numbers that are stated, and those that words imply."""
        return list(dict.fromkeys([*self.stated, *_implied(self._text, _IMPLIED)]))

    @cached_property
    def _facts(self) -> set[float]:
        return set(_implied(self._text, _FACTS))

    @cached_property
    def states_percent(self) -> bool:
        """Whether a percentage is stated."""
        return _PERCENT.search(self._text) is not None

    @cached_property
    def _stated(self) -> set[float]:
        """The stated numbers, in percent, thousands and millions, too, and percentages that are added or taken off."""
        stated = list(self.numbers)
        if self.states_percent:
            stated += (1 + sign * value / 100 for value in self.numbers for sign in (1, -1))
        # A 1 in other units would be any power of ten.
        scaled = {_rounded(value * scale) for value in stated if value != 1.0 for scale in _SCALES}
        return scaled | {_rounded(value) for value in stated}

    @cached_property
    def _derived(self) -> set[float]:
        """What follows from the stated numbers in one step, as a share and in thousands, too."""
        stated = self.numbers
        found = set(_in_one_step(stated))
        factors = [*stated, *map(_complement, filter(_is_percentage, stated))]
        for first, second in itertools.combinations(factors[:_MAX_PAIRED], 2):
            found.update((first + second, abs(first - second), first * second, first + second / 60))
            if first and second:
                found.update((first / second, second / first))
        for whole, above, below in _MIXED.findall(self._text):
            found.add(float(whole) + float(above) / (float(below) or 1))
        if _PARTS.search(self._text):
            found.update(whole + part for whole in stated for part in (0.25, 0.5, 0.75))
        scaled = (value * scale for value in found for scale in (1.0, 0.01, 1e3, 1e-3))
        return set(map(_rounded, scaled))

    @cached_property
    def _folded(self) -> str:
        return folded(self._text)

    @cached_property
    def _words(self) -> set[str]:
        return set(_words(self._text))

    def origin(self, value: float) -> Origin:
        """Return where a number comes from."""
        value = abs(value)
        if _rounded(value) in self._stated:
            return Origin.GIVEN
        if value in (0.0, 1.0) or not math.isfinite(value):
            return Origin.KNOWN
        is_power = mantissa(value) == 1.0  # Powers of ten follow from anything.
        if (_rounded(value) in self._derived and not is_power) or self._is_date(value):
            return Origin.DERIVED
        if _is_known(value) or value in self._facts:
            return Origin.KNOWN
        is_small = value == int(value) and (value <= _MAX_SMALL or value in YEARS)
        return Origin.WEAK if is_small or value in _COMMON or is_power else Origin.UNKNOWN

    def times_stated(self, value: float) -> int:
        """Return how often a number is stated in plain digits."""
        return [float(written) for written in _ORDINARY.findall(self._text)].count(value)

    def states_digits(self, value: int) -> bool:
        """Return whether a number is stated, also within a date or a time."""
        return value in self.numbers or value in map(int, re.findall(r"\d{1,9}", ascii_digits(self._text)))

    def _is_date(self, value: float) -> bool:
        """Return whether a number is a date such as 20240301 in a year that was given."""
        return 1e7 < value < 3e7 and value // 10_000 in self.numbers

    def holds(self, text: str) -> bool:
        """Return whether most of the words of a text were given."""
        words = set(_words(text))
        if any(self.origin(value) is not Origin.GIVEN for value in written_numbers(text)):
            return False
        is_whole = folded(text.strip()) in self._folded
        return is_whole or len(words & self._words) * 2 > len(words) or not words

    def holds_each_word_of(self, text: str) -> bool:
        """Return whether each longer word and each name of a text was given, or begins like one that was."""
        known = {word[:4] for word in self._words}
        said = [word for word in _WORD.findall(text) if len(word) > 3 or word.istitle()]
        return all(folded(word)[:4] in known or folded(word) in _OPENING_WORDS for word in said)

    def mentions(self, name: str) -> bool:
        """Return whether a longer word of a name was given, in the singular or the plural."""
        words = (word for word in _words(name.replace("_", " ")) if len(word) > 2)
        return any({word, f"{word}s", word.removesuffix("s")} & self._words for word in words)

    def is_example(self, written: str) -> bool:
        """Return whether a number, as a program writes it, stands in an example of another task."""
        shown = set(map(mantissa, written_numbers(self._examples)))
        return any(mantissa(value) in shown for value in written_numbers(written))


def _is_known(value: float) -> bool:
    return value in _KNOWN or any(float(f"{value:.{digits}g}") in _ROUNDED for digits in range(4, 9))


def written_numbers(text: str) -> Iterator[float]:
    """Yield the numbers that a text states in digits, in each way that they may be read."""
    text = apart(text)
    for match in WRITTEN_NUMBER.finditer(ascii_digits(text)):
        yield from map(abs, possible_values(match[0]))
    yield from map(float, _ORDINARY.findall(ascii_digits(text)))
    yield from map(float, _WITHOUT_ZERO.findall(ascii_digits(text)))
    for above, below in _FRACTION.findall(text):
        yield float(above) / (float(below) or 1)


def _of_clocks(text: str) -> Iterator[float]:
    """Yield what is written of a time of day: hours with their fraction, minutes, and those of the afternoon."""
    for hours, minutes in _CLOCK.findall(ascii_digits(text)):
        hour, minute = float(hours), float(minutes)
        yield from (hour + minute / 60, hour * 60 + minute, hour + 12)


def _of_letters(text: str) -> Iterator[float]:
    """Yield how many letters a word has that is spelled out, and how many of each."""
    for groups in itertools.islice(_SPELLED.findall(text), _MAX_SPELLED):
        word = "".join(groups)
        yield from map(float, {len(word), *Counter(word).values()})


def _implied(text: str, words_with_numbers: Mapping[str, Iterable[int | float]]) -> Iterator[float]:
    """Yield the numbers that go with words of a text."""
    for asked, numbers in words_with_numbers.items():
        if re.search(asked, text, re.IGNORECASE):
            yield from map(float, numbers)


def _of_other_bases(text: str) -> Iterator[float]:
    if not _OTHER_BASE.search(text):
        return
    for word in _DIGITS_OF_OTHER_BASES.findall(text):
        yield float(int(word, 16))
        if not set(word) - {"0", "1"}:
            yield float(int(word, 2))


def _rounded(value: float) -> float:
    return float(f"{value:.9g}")


def _is_percentage(value: float) -> bool:
    return 0 < value < 100


def _complement(value: float) -> float:
    return 1 - value / 100


def _in_one_step(stated: Iterable[float]) -> Iterator[float]:
    for value in stated:
        yield from (value, value + 1, abs(value - 1), value + 12, value * value)
        if value <= 100:
            yield from (100 - value, 100 + value)
        if 0 < value < 1:
            yield from (1 - value, 1 + value)
        for unit in _UNITS:
            yield from (value * unit, value / unit)


def _words(text: str) -> list[str]:
    return re.findall(r"[^\W_]+", folded(text))


def shown_of(profiles: Mapping[str, Mapping[str, str]] | None) -> str:
    """Return what a model was shown of files and variables, as one text."""
    return "\n".join(text for texts in (profiles or {}).values() for text in texts.values())
