"""Numbers in words, in the languages of questions and answers."""

from __future__ import annotations

import functools
import itertools
import re
from collections.abc import Iterable, Iterator, Mapping

from code_chains.language.vocabulary import read_data

_DATA = read_data("number_words.json")
"""Words by their values: `numerals` from zero on, one text a language, and `further` ones, which name what is given and
nothing else, as some are words of another language, too; `tens` from twenty on, and `hundreds` from a hundred on; `values`
of larger numbers, multiples and fractions, as programs write a third as 3."""
_PART = re.compile(r"[^\W\d_]+")


def numerals(*languages: str) -> dict[str, int]:
    """Return the values of words, given in the order of their values from zero on, one text a language."""
    values: dict[str, int] = {}
    for words in languages:
        values.update(zip(words.split(), itertools.count(), strict=False))
    return values


_NUMERALS: dict[str, int] = {**numerals(*_DATA["numerals"]), **_DATA["other_numerals"]}
_TENS = {word: 10.0 * ten for line in _DATA["tens"] for ten, word in enumerate(line.split(), 2)}
_VALUES = {
    **{word: float(value) for value, words in _DATA["values"].items() for word in words.split()},
    **_TENS,
    **dict.fromkeys(_DATA["thousands"].split(), 1000.0),
    "puluh": 10.0,
    "ratus": 100.0,
}
_HUNDREDS_OF = {
    word: 100 * number for line in _DATA["hundreds"] for number, word in enumerate(line.split(), 1)
}
_OF_WORDS = {**numerals(*_DATA["further"]), **_HUNDREDS_OF, **_NUMERALS, **_VALUES}
_AND = frozenset(_DATA["and"].split())
_MAX_COMPOUND = 60
_THOUSAND = 1000.0
_FACTORS = (10.0, 100.0, _THOUSAND)
"""What a smaller number before it multiplies: `dua puluh`, `zwei hundert`."""
_CHINESE_DIGITS = "零一二三四五六七八九十"
_CHINESE_VALUES = {"百": 100.0, "千": 1000.0, "万": 10_000.0, "半": 0.5, "两": 2.0, "兩": 2.0}
_OF_UNITS = re.compile(r"(?<!\d)(?:(?:\d++[百千万]){2,}\d*|\d++[百千万]\d++)")
_UNIT = re.compile(r"(\d+)([百千万]?)")
_CHINESE_NUMERAL = re.compile("(二?)十([一二三四五六七八九]?)|([零一二三四五六七八九])")


def numbers_in_words(text: str) -> Iterator[int]:
    """Yield the numbers that a text has in words, up to twenty."""
    for word in re.findall(r"[^\W\d_]+(?:-[^\W\d_]+)?", text.lower()):
        if word in _NUMERALS:
            yield _NUMERALS[word]
    for two, digit, only in _CHINESE_NUMERAL.findall(text):
        if only:
            yield _CHINESE_DIGITS.index(only)
        else:  # Ten or twenty, and perhaps more.
            yield (20 if two else 10) + _CHINESE_DIGITS.index(digit or "零")


def stated_in_words(text: str) -> Iterator[float]:
    """Yield the numbers that a text has in words, with the parts of those that are composed, multiples and fractions."""
    yield from map(float, numbers_in_words(text))
    words = list(itertools.chain.from_iterable(map(_numerals_of, _PART.findall(text.lower()))))
    yield from (float(_OF_WORDS[word]) for word in words if word in _OF_WORDS)
    yield from _composed(words)
    for sign in filter(_CHINESE_VALUES.__contains__, text):
        yield _CHINESE_VALUES[sign]
    for written in _OF_UNITS.findall(text):
        yield sum(float(digits) * _CHINESE_VALUES.get(unit, 1.0) for digits, unit in _UNIT.findall(written))


def _numerals_of(word: str) -> tuple[str, ...]:
    """Return the numerals that a word is made of, such as `zwei`, `hundert` and `fünfzig`; the word if it is none."""
    return _split(word[:_MAX_COMPOUND]) or (word,)


@functools.lru_cache(4096)
def _split(word: str) -> tuple[str, ...]:
    for end in range(len(word), 1, -1):
        if word[:end] in _OF_WORDS or word[:end] in _AND:
            if end == len(word):
                return (word,)
            if rest := _split(word[end:]):
                return (word[:end], *rest)
    return ()


def _composed(words: Iterable[str]) -> Iterator[float]:
    """Yield the numbers that several words in a row state together."""
    total, last, count = 0.0, 0.0, 0
    for word in itertools.chain(words, [""]):
        value = _OF_WORDS.get(word)
        if value is not None:
            # Ten and a hundred multiply the numeral before them, and a thousand all that is smaller.
            smaller = total if value == _THOUSAND else last
            factor = value if value in _FACTORS and 0 < smaller < value else 0.0
            last = smaller * factor or value
            total += last - (smaller if factor else 0.0)
            count += 1
        elif word not in _AND:
            if count > 1:
                yield total
            total, last, count = 0.0, 0.0, 0


_PARTS_OF_ONE = frozenset(_DATA["parts_of_one"].split())
_HUNDREDS = (100.0, _THOUSAND)


def whole_numerals(text: str, factors: Mapping[str, float]) -> Iterator[float]:
    """Yield each number that a text has in words as a whole: twenty-one is 21, and neither 20 nor 1.

    Args:
        text: The text.
        factors: Words that multiply what stands before them, such as million.
    """
    total, below, is_open = 0.0, 0.0, False
    words = _PART.findall(text.lower().replace("quatre-vingt", "eighty "))
    for word in itertools.chain(itertools.chain.from_iterable(map(_numerals_of, words)), [""]):
        value = factors.get(word) or (None if word in _PARTS_OF_ONE else _OF_WORDS.get(word))
        if word in _AND:
            continue
        if is_open and (value is None or not (word in factors or _fits(below, value))):
            yield total + below
            total, below = 0.0, 0.0
        is_open = value is not None
        if value is None:
            continue
        if word in factors or value in _HUNDREDS:
            below = (below or 1.0) * value
        else:
            below += value
        if value >= _THOUSAND:
            total, below = total + below, 0.0


def _fits(below: float, value: float) -> bool:
    """Return whether a numeral continues a number below a thousand, as five does after twenty."""
    last = below % 100
    if not below or value in _HUNDREDS:
        return True
    if value < 10:
        return value == int(value) and (last % 10 == 0) and (last != 10 or value > 6)
    is_reversed = last < 10 and value % 10 == 0
    return last == 0 or is_reversed or (value < 20 and last in (60, 80))
