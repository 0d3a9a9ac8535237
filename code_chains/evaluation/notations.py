"""Other notations of what is expected: quantities with their units, lists by line, dates in words."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import datetime
from typing import Any

from code_chains.verification.number_words import stated_in_words
from code_chains.verification.numbers import NUMBER, WRITTEN_NUMBER, ascii_digits, normalized, possible_values

_UNITS = {
    **dict.fromkeys(("€", "euro"), "eur"),
    **dict.fromkeys(("$", "dollar", "us$"), "usd"),
    **dict.fromkeys(("£", "pound"), "gbp"),
    **dict.fromkeys(("¥", "yen"), "jpy"),
    **dict.fromkeys(("percent", "prozent", "pct"), "%"),
    **dict.fromkeys(("°c", "celsius"), "c"),
    "kilometer": "km",
    "kilometre": "km",
    "meter": "m",
    "metre": "m",
    "centimeter": "cm",
    "centimetre": "cm",
    "kilogram": "kg",
    "gram": "g",
    "liter": "l",
    "litre": "l",
    "hour": "h",
    "minute": "min",
    "second": "sec",
    "s": "sec",
}
_SCALES = {
    **dict.fromkeys(("k", "thousand", "tausend", "tsd", "mil", "mille"), 1e3),
    **dict.fromkeys(
        ("m", "mn", "mio", "million", "millions", "millionen", "millones", "milioni", "milhões"), 1e6
    ),
    **dict.fromkeys(("b", "bn", "mrd", "billion", "milliarden", "milliards", "miliardi"), 1e9),
}
_SCALE = re.compile(
    rf"\s?((?i:{'|'.join(sorted(_SCALES.keys() - {'m', 'b'}, key=len, reverse=True))})|[MB])(?!\w)"
)
_UNIT = re.compile(r"\s?(per cent|[^\W\d_]+|[€$£¥%٪％]|°[CF]?)", re.IGNORECASE)
_MONEY_BEFORE = re.compile(r"(us\$|[€$£¥]|eur|usd|gbp|chf)\s?[-+]?$", re.IGNORECASE)
_MINUS = re.compile(r"(?:\bminus\s+|[-\u2212]\s?(?=[€$£¥]))([€$£¥]?)\s?(?=\d)", re.IGNORECASE)
_FRACTION = re.compile(r"\W*(\d{1,9})\s?/\s?([1-9]\d{0,8})\W*")
_SEPARATED = re.compile(
    rf"[^\d]*?(?:(?:{NUMBER.pattern})(?:\s*[,;]?\s+(?:and\s+)?|[,;]|$|(?=[\]).]))){{2,}}[\s\]).]*"
)
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+")
_PAIR = re.compile(r"\s*['\"]?(.{1,200}?)['\"]?(?:\s*[:=]\s+|\s{2,})(\S.*?)\s*")
_ABOUT_SERIES = re.compile(r"(?:Name: .*, )?dtype: \w+")
_ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_MIDNIGHT = re.compile(r"(\d{4}-\d\d-\d\d)[ T]00:00:00(?:\.0+)?")
_DATES = (
    "%d.%m.%Y",
    "%d %B %Y",
    "%B %d, %Y",
    "%d %b %Y",
    "%b %d, %Y",
    "%A, %d %B %Y",
    "%A, %B %d, %Y",
    "%Y/%m/%d",
)
_SECONDS = re.compile(r"(\d{1,2}:\d\d):00")


def as_number(text: str) -> str:
    """Return a text whose number has its sign and its power of ten as programs write them."""
    return normalized(_MINUS.sub(r"\1-", text))


def numbers_in_other_forms(text: str) -> Iterator[float]:
    """Yield the number that a text is: a fraction, a single one in words, or one with a word for a power of ten."""
    if match := _FRACTION.fullmatch(text):
        yield int(match[1]) / int(match[2])
    written = list(WRITTEN_NUMBER.finditer(text))
    if not written:
        values = {unicodedata.numeric(sign) for sign in text if unicodedata.category(sign) == "No"}
        values |= set(stated_in_words(text))
        yield from values if len(values) == 1 else ()
    elif len(written) == 1 and (scale := _SCALE.match(text, written[0].end())):
        yield from (value * _SCALES[scale[1].casefold()] for value in possible_values(written[0][0]))


def quantity(text: str) -> tuple[list[float], str] | None:
    """Return the readings and the unit of a text that is one number with a unit before or after it; None of any other.

    Example:
        >>> quantity("$12.50"), quantity("5 kilometers"), quantity("about 5 km away")
        (([12.5], 'usd'), ([5.0], 'km'), None)
    """
    text = as_number(text.strip().rstrip("."))
    found = list(WRITTEN_NUMBER.finditer(ascii_digits(text)))
    if len(found) != 1:
        return None
    before, after = text[: found[0].start()].strip(), text[found[0].end() :].strip()
    unit = before or after
    is_unit = bool(_MONEY_BEFORE.fullmatch(before) if before else _UNIT.fullmatch(after))
    if not is_unit or (before and after):
        return None
    return list(possible_values(found[0][0])), _unit(unit)


def unit_at(text: str, match: re.Match[str]) -> str:
    """Return the unit of a number within a text; empty if it has none."""
    if before := _MONEY_BEFORE.search(text[: match.start()]):
        return _unit(before[1])
    after = _UNIT.match(text, match.end())
    return _unit(after[1]) if after else ""


def _unit(written: str) -> str:
    name = written.casefold().replace(" ", "")
    singular = name.removesuffix("s") if len(name) > 3 else name
    return _UNITS.get(singular, singular)


def shown_as(text: str, expected: Any) -> Iterator[Any]:
    """Yield what a text shows line by line, or in words, in the form of what is expected."""
    if isinstance(expected, list) and len(expected) > 1:
        yield from _lists(text, expected)
    elif isinstance(expected, dict):
        yield _mapping(text)
    elif isinstance(expected, str) and _ISO_DAY.fullmatch(expected):
        yield _MIDNIGHT.sub(r"\1", text.strip())
        yield from _days(text.strip().rstrip("."))
    elif isinstance(expected, str):
        yield _SECONDS.sub(r"\1", text.strip())


def _lists(text: str, expected: list[Any]) -> Iterator[list[Any]]:
    if all(isinstance(item, int | float) for item in expected):
        if _SEPARATED.fullmatch(text.strip()):
            yield list(NUMBER.findall(text))
        return
    lines = [_BULLET.sub("", line).strip() for line in text.strip().splitlines()]
    yield lines
    if len(lines) == 1:
        yield [item.strip(" '\"") for item in lines[0].strip("[]().").split(",")]


def _mapping(text: str) -> Mapping[str, str]:
    lines = [
        line
        for line in text.strip().splitlines()
        if line.strip() and not _ABOUT_SERIES.fullmatch(line.strip())
    ]
    pairs = [_PAIR.fullmatch(line) for line in lines]
    return {pair[1]: pair[2] for pair in pairs if pair} if all(pairs) else {}


def _days(text: str) -> Iterator[str]:
    for form in _DATES:
        with suppress(ValueError):
            yield datetime.strptime(text, form).date().isoformat()
