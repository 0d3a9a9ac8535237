"""Other notations of what is expected: lists by line, dates in words, numbers that are names."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from datetime import date, datetime
from functools import cache
from typing import Any

from code_chains.language.reasons import everywhere
from code_chains.language.vocabulary import either, vocabulary
from code_chains.verification.numbers import NUMBER

CODE = re.compile(r"[-+]?0\d[\d.]*|\+\d{7,}")
"""A number that is a name when it stands in a text, such as a postal code: its zeros count."""
_PHONE = re.compile(r"\+\d(?:[ ()/-]{0,3}\d){6,}")
_ABOUT_VERSION = re.compile(r"\bv(?:ersion)?\b\.?", re.IGNORECASE)
_WORDS = vocabulary("notations")
_MONTHS = {month: number for months in _WORDS["months"] for number, month in enumerate(months.split(), 1)}
_MONTH = "|".join(_MONTHS)
_DATE_OR_TIME = re.compile(
    rf"\b\d\d?:\d\d(?::\d\d)?|\b[12]\d{{3}}[-/.]\d\d(?:[-/.]\d\d)?\b|\b\d\d?[-/.]\d\d?[-/.]\d{{4}}\b"
    rf"|\b(?:{_MONTH}|week|woche|kw|semaine|semana|settimana)\b\.?\s\d\d?\b"
    rf"|\b\d\d?\.?\s(?:(?:of|de)\s)?(?:{_MONTH})\b",
    re.IGNORECASE,
)
_SEPARATED = re.compile(
    r"[^\d\0]*+(?:\0(?:(?:\s*+[,;]\s++|\s++)(?:and\s++)?|[,;]|$|(?=[\]).]))){2,}+[\s\]).]*+"
)
"""A text of numbers, each of which was replaced by a NUL: in `1,111,` a comma has two meanings."""
_WITH_COMMA = re.compile(r"[-+]?\d+(?:,\d+)?(?!\d|[,.]\d)")
_WITH_COMMAS = re.compile(
    rf"[^\d]*?(?:{_WITH_COMMA.pattern}(?:\s*;\s*|\s+(?:(?:und|y|et|e)\s+)?|,\s+|[\]).]|$)){{2,}}"
)
_BULLET = re.compile(r"^\s*(?:[-*•]|\d{1,3}[.)])\s+")
_PAIR = re.compile(r"['\"]?(.{0,199}?\S)['\"]?(?:\s*+[:=]\s++|\s{2,}+)(\S.*)")
_ABOUT_SERIES = re.compile(r"(?:Name: .*, )?dtype: \w+")
_ISO_DAY = re.compile(r"\d{4}-\d\d-\d\d")
_MIDNIGHT = re.compile(r"(\d{4}-\d\d-\d\d)[ T]00:00:00(?:\.0+)?")
_DATES = (
    "%Y-%m-%d",
    "%d.%m.%Y",
    "%d %B %Y",
    "%B %d, %Y",
    "%d %b %Y",
    "%b %d, %Y",
    "%A, %d %B %Y",
    "%A, %B %d, %Y",
    "%Y/%m/%d",
)
_BEFORE_DATE = either(_WORDS["before_date"])
_DAY_FIRST = re.compile(
    rf"{_BEFORE_DATE}(?:the\s+)?(\d{{1,2}})(?:st|nd|rd|th|er|[.º°])?\s+(?:(?:of|de)\s+)?([^\W\d_]+)\.?,?"
    r"\s+(?:del?\s+)?(\d{4})",
    re.IGNORECASE,
)
_MONTH_FIRST = re.compile(
    rf"{_BEFORE_DATE}([^\W\d_]+)\.?\s+(\d{{1,2}})(?:st|nd|rd|th)?,?\s+(\d{{4}})", re.IGNORECASE
)
_LETTER, _CHOICE = re.compile("[A-Z]"), re.compile(r"(?:\(([A-Z])\)|([A-Z])[.):])(?:\s+\S.*)?", re.DOTALL)
"""A letter that names one of several answers, and an answer that begins with one."""
_SHORT_TIME = re.compile(r"^\d:")
_SECONDS = re.compile(r"(\d{1,2}:\d\d):00")


def is_code(text: str) -> bool:
    """Return whether an expected text is a number that is a name, such as 01067."""
    return CODE.fullmatch(text.strip()) is not None


def has_same_codes(expected: str, stated: str) -> bool:
    """Return whether the numbers of texts that are names are written alike; those of dates and times are none."""
    if _ABOUT_VERSION.search(expected):
        return NUMBER.findall(expected) == NUMBER.findall(stated)
    pairs = zip(_numbers_and_codes(expected), _numbers_and_codes(stated), strict=True)
    return all(first[0] == second[0] or not (first[1] or second[1]) for first, second in pairs)


def _numbers_and_codes(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the numbers of a text, and whether they are names."""
    dated = {place for match in _DATE_OR_TIME.finditer(text) for place in range(*match.span())}
    for match in NUMBER.finditer(text):
        is_name = is_code(match[0]) or _PHONE.match(text, match.start()) is not None
        yield match[0], is_name and match.start() not in dated


def shown_as(text: str, expected: Any, *, has_commas: bool = False) -> Iterator[Any]:
    """Yield what a text shows line by line, or in words, in the form of what is expected.

    Args:
        text: The text.
        expected: What is expected.
        has_commas: Whether commas may stand before decimals, as in other languages than English.
    """
    if isinstance(expected, list) and len(expected) > 1:
        yield from _lists(text, expected)
        if has_commas and _WITH_COMMAS.fullmatch(text.strip()):
            yield [item.replace(",", ".") for item in _WITH_COMMA.findall(text)]
    elif isinstance(expected, dict):
        yield _mapping(text)
    elif isinstance(expected, str) and _ISO_DAY.fullmatch(expected):
        yield _MIDNIGHT.sub(r"\1", text.strip())
        yield from _days(text.strip().rstrip("."))
    elif (
        isinstance(expected, str)
        and _LETTER.fullmatch(expected)
        and (choice := _CHOICE.fullmatch(text.strip()))
    ):
        yield choice[1] or choice[2]
    elif isinstance(expected, str):
        time = _SECONDS.sub(r"\1", text.strip())
        is_short = _SHORT_TIME.match(expected) is not None
        yield time.removeprefix("0") if is_short else _SHORT_TIME.sub(r"0\g<0>", time)


def _lists(text: str, expected: list[Any]) -> Iterator[list[Any]]:
    lines = [_BULLET.sub("", line).strip() for line in text.strip().splitlines()]
    lines = lines[1:] if lines and lines[0].endswith(":") else lines
    yield lines
    if all(isinstance(item, int | float) for item in expected):
        if _SEPARATED.fullmatch(NUMBER.sub("\0", text.strip().replace("\0", " "))):
            yield list(NUMBER.findall(text))
        return
    if len(lines) == 1:
        line = lines[0].strip("[]().")
        for items in (line.split(","), re.split(_between_items(), line)):
            yield [item.strip(" '\"") for item in items]


@cache
def _between_items() -> str:
    """Return what stands between the items of a list in a sentence, besides blanks."""
    words = "|".join(sorted(map(re.escape, everywhere("and"))))
    return rf"[,;、،](?:\s*(?:{words})\s)?|\s(?:{words}|&)\s"


def _mapping(text: str) -> Mapping[str, str]:
    lines = [
        line
        for line in text.strip().splitlines()
        if line.strip() and not _ABOUT_SERIES.fullmatch(line.strip())
    ]
    pairs = [_PAIR.fullmatch(line.strip()) for line in lines]
    return {pair[1]: pair[2] for pair in pairs if pair} if all(pairs) else {}


def _days(text: str) -> Iterator[str]:
    for form in _DATES:
        with suppress(ValueError):
            yield datetime.strptime(text, form).date().isoformat()
    if match := _DAY_FIRST.fullmatch(text):
        day, month, year = match.groups()
    elif match := _MONTH_FIRST.fullmatch(text):
        month, day, year = match.groups()
    else:
        return
    with suppress(ValueError, KeyError):
        yield date(int(year), _MONTHS[month.casefold()], int(day)).isoformat()
