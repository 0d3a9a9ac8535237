"""Numbers within texts: with the words and signs that make them others, and with their units."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Iterator
from decimal import Decimal

from code_chains.evaluation.notations import CODE
from code_chains.evaluation.units import (
    LETTERS,
    MONEY,
    MONEY_BEFORE,
    RAISED,
    UNIT,
    by_word,
    unit_at,
    unit_named,
)
from code_chains.language.vocabulary import either, pattern, vocabulary
from code_chains.verification.number_words import stated_in_words, whole_numerals
from code_chains.verification.numbers import WRITTEN_NUMBER, Number, normalized, possible_values

_WORDS = vocabulary("quantities")
_SCALES = {word: Decimal(scale) for word, scale in by_word(_WORDS["scales"]).items()}
_SIGNS_OF_SCALES = {word: Decimal(scale) for word, scale in by_word(_WORDS["signs_of_scales"]).items()}
_SCALE = re.compile(
    rf"\s?(?:(?:(?i:{'|'.join(sorted(_SCALES, key=len, reverse=True))})|[MB])(?!\w)\.?|[‰百千천万萬만億亿억])"
)
_SCALE_OF_MONEY = re.compile(r"[mb](?!\w)")
_DASH = re.compile(r"(?<![\w.,)])[\u2010-\u2014\ufe63\uff0d](?=\d)")
_NEGATIVE = either(_WORDS["negative"])
_NEGATIVE_WORDS = rf"{_NEGATIVE}|(?<!\w)-(?=[^\W\d_])"
_MINUS = re.compile(rf"(?:{_NEGATIVE}\s+|-\s?(?=[{MONEY}]))([{MONEY}]?)\s?(?=\d)", re.IGNORECASE)
_VULGAR = re.compile(r"(?<![\d.,])(\d{0,9})\s?([¼-¾⅐-⅞])")
_MIXED = re.compile(r"(?<![\w/.,])(\d{1,6})\s+(\d{1,3})\s?[/⁄]\s?(\d{1,3})(?![\d/.,]*\d)")
_EXPONENT = re.compile(r"(?<=[^\W\d_])(?:\^|\*\*)([23])(?!\d)")
_INVERSE = re.compile(rf"[ ·⋅]({LETTERS})(?:⁻|\^-)([¹²³1-3])(?!\d)")
_INEXACT = re.compile(r"(?<![\w.,])(?:\d+(?:\.\d+)?[eE]-\d{1,3}(?!\w)|\d[\d,]{9,}\.0+(?![\d.,eE]))")
_PER_MILLE = re.compile(r"(?:per|pro) ?mille\b", re.IGNORECASE)
_MANY_DIGITS = 10
_TAG = re.compile(r"<[^<>\s][^<>]*>\s*$")
_BOUNDS = either(_WORDS["bounds"])
_BOUND = re.compile(rf"{_BOUNDS}\s?", re.IGNORECASE)
_CHANGES_BEFORE = re.compile(
    rf"""(?:
        !=|<>|[≠≤≥≮≯√∛±]|<=?|(?<![=\->])>=?
        |[\w)](?:\ +\*\*\ +|\*\*|\ *\^\ *|\ *[*×÷]\ *|/)
        |(?<!\w)(?!(?:u?int|float|array|tensor|mpf)\d*\()(?-i:[a-z]\w*)\(\s*
        |\\?(?:sqrt|log|ln)(?:\s+|\{{)
        |\b(?:root|square|cube|factorial|logarithm|wurzel)\s+(?:of|aus|von)\s+
        |\b(?:more|less|fewer|greater|other|mehr|weniger)\s+(?:than|als)\s+|{_BOUNDS}\s+
        |\b(?:plus\s+de|moins\s+de|más\s+de|menos\s+de)\s+
        )=?\s*[{MONEY}]?$""",
    re.VERBOSE | re.IGNORECASE,
)
"""What stands before a number that is not the value itself."""
_CHANGES_AFTER = re.compile(
    r"""\s?[⁰¹²³⁴-⁹⁺⁻πℯ]|(?-i:[ij])(?!\w)|x[\da-f]|(?<=0)[ob]\d|\+|\^|\*\*\w
    |\s+(?:squared|cubed|factorial|or\s+(?:more|less|fewer))\b""",
    re.VERBOSE | re.IGNORECASE,
)
_CHINESE = re.compile(
    r"[^百千万億亿零一二三四五六七八九十半两兩]*[零一二三四五六七八九十半两兩][^百千万億亿]*"
)
_CHANGES_WORDS = re.compile(
    r"[√<>≠]|\ba\s+(?:third|fourth|fifth|sixth|seventh|eighth|ninth|tenth)\b"
    r"|\b(?:thirds|quarters|fourths|fifths|sixths|sevenths|eighths|ninths|tenths|drittel|viertel|fünftel)\b"
    rf"|\b(?:than|root|squared|cubed|factorial|log\w*)\b|{_BOUNDS}",
    re.IGNORECASE,
)
NEGATES = pattern(_WORDS["negates"])
_FRACTION = re.compile(r"[^\w+-]*([-+]?)(\d{1,9})\s?[/⁄]\s?([1-9]\d{0,8})\W*")


def as_number(text: str, query: str = "") -> str:
    """Return a text whose numbers have their signs, fractions and powers as programs write them.

    Words such as `at least`, with which no number is the value itself, are left out if the question has them, too.
    """
    if asked := {_bound(match) for match in _BOUND.finditer(query)}:
        text = _BOUND.sub(lambda match: "" if _bound(match) in asked else match[0], text)
    text = _VULGAR.sub(lambda match: repr(int(match[1] or 0) + unicodedata.numeric(match[2])), text)
    text = _MINUS.sub(r"\1-", _DASH.sub("-", normalized(_MIXED.sub(_decimal, text))))
    text = _INVERSE.sub(lambda match: f"/{match[1]}{match[2].translate(RAISED)}", text)
    text = _EXPONENT.sub(lambda match: match[1].translate(RAISED), text)
    text = _PER_MILLE.sub("‰", text)
    return _INEXACT.sub(lambda match: exact(Number(match[0])).text, text)


def _bound(match: re.Match[str]) -> str:
    return " ".join(match[0].casefold().split())


def _decimal(match: re.Match[str]) -> str:
    """Return 1 1/2 as 1.5, but not the numbers of 1 3/2 or 1 1/0."""
    whole, above, below = map(int, match.groups())
    return repr(whole + above / below) if above < below else match[0]


def numbers_in_other_forms(text: str, query: str = "") -> Iterator[float]:
    """Yield the number that a text is: a fraction, or a single one in words."""
    text = as_number(text, query)
    if match := _FRACTION.fullmatch(text):
        yield int(match[1] + match[2]) / int(match[3])
    if WRITTEN_NUMBER.search(text) or _CHANGES_WORDS.search(text) or NEGATES.search(text):
        return
    values = set(
        whole_numerals(text, {word: float(factor) for word, factor in _SCALES.items() if len(word) > 2})
    )
    if not values and _CHINESE.fullmatch(text):
        values = set(stated_in_words(text))
    if len(values) == 1:
        yield values.pop() * (-1 if re.search(_NEGATIVE_WORDS, text, re.IGNORECASE) else 1)


def quantity(text: str) -> tuple[list[Number], str] | None:
    """Return the readings and the unit of a text that is one number with a unit or a scale; None of any other.

    Example:
        >>> quantity("$12.50"), quantity("5 kilometers"), quantity("about 5 km away")
        (([Number(text='12.50')], 'usd'), ([Number(text='5')], 'km'), None)
    """
    text = as_number(text.strip().rstrip("."))
    found = list(WRITTEN_NUMBER.finditer(text))
    if len(found) != 1 or CODE.fullmatch(found[0][0]):
        return None
    factor, end = _scales_at(found[0])[0]
    before, after = text[: found[0].start()].strip(), text[end:].strip()
    is_one = not before or bool(MONEY_BEFORE.fullmatch(before))
    if not is_one or (after and (before or not UNIT.fullmatch(after))) or text == found[0][0]:
        return None
    numbers = [_scaled(_as_written(value, found[0][0]), factor) for value in possible_values(found[0][0])]
    return numbers, unit_named(before or after) if before or after else ""


def measured(match: re.Match[str], values: Iterable[float]) -> Iterator[tuple[Number, str]]:
    """Yield the readings of a number within a text, multiplied by the words after it, each with its unit.

    Args:
        match: The number, in a text that `as_number` returned.
        values: What it may be by itself.
    """
    if _is_changed(match):
        return
    numbers = [_as_written(value, match[0]) for value in values]
    for factor, end in _scales_at(match):
        unit = unit_at(match.string, match.start(), end)
        yield from ((_scaled(number, factor), unit) for number in numbers)


def is_by_itself(match: re.Match[str]) -> bool:
    """Return whether no word or sign beside a number makes it another one."""
    return not _is_changed(match) and _scales_at(match)[0][0] == 1


def _is_changed(match: re.Match[str]) -> bool:
    before = _TAG.sub("", match.string[max(0, match.start() - 40) : match.start()])
    return bool(_CHANGES_BEFORE.search(before) or _CHANGES_AFTER.match(match.string, match.end()))


def _scales_at(match: re.Match[str]) -> list[tuple[Decimal, int]]:
    """Return what the words after a number multiply it by, with their end; 300 K and 5 B may be units."""
    text, end, factor = match.string, match.end(), Decimal(1)
    is_money = MONEY_BEFORE.search(text[max(0, match.start() - 8) : match.start()]) is not None
    while found := _SCALE.match(text, end) or (_SCALE_OF_MONEY.match(text, end) if is_money else None):
        word = found[0].strip().rstrip(".")
        factor *= _SCALES.get(word.casefold()) or _SIGNS_OF_SCALES[word.upper()]
        end = found.end()
    by_itself = [(Decimal(1), match.end())] if text[match.end() : end] in (" K", " B") else []
    return [*by_itself, (factor, end)]


def _as_written(value: float, written: str) -> Number:
    """Return a reading of a number with as many digits as are written, as it agrees up to rounding."""
    digits = re.sub(r"\D", "", written)
    if "e" in written.lower():
        return exact(Number(repr(value)))
    if float(digits) == abs(value):  # A float would lose the last digits of a large one.
        return Number(f"{'-' if value < 0 else ''}{digits}")
    decimals = len(re.split(r"[.,]", written)[-1]) if value != int(value) else 0
    return Number(f"{value:.{decimals}f}")


def exact(number: Number) -> Number:
    """Return a number without a negative exponent, which hides its decimals, and a large one without decimals of zero."""
    if "e-" in number.text.lower() and number.value:
        return Number(format(Decimal(number.text.replace(",", "")), "f"))
    whole, _, decimals = number.text.partition(".")
    return Number(whole) if len(whole) >= _MANY_DIGITS and decimals and not decimals.strip("0") else number


def _scaled(number: Number, factor: Decimal) -> Number:
    return number if factor == 1 else Number(format(Decimal(number.text) * factor, "f"))


def per_hundred(number: Number) -> Number:
    """Return a number in percent as a share."""
    return _scaled(number, Decimal("0.01"))
