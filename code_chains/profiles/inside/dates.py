"""How dates are written in a column, as a format of `strptime`."""

from __future__ import annotations

import datetime
import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass
from operator import itemgetter

ISO = "ISO8601"
"""The name that pandas has for all forms of ISO 8601."""
_TIME = (
    r"(?:(?P<gap>[T ]+)(?P<hour>\d{1,2}):(?P<minute>\d{2})(?P<second>:\d{2})?(?P<fraction>[.,]\d{1,9})?"
    r"(?P<half> ?[AaPp][Mm])?(?P<zone> ?(?:Z|UTC|[+-]\d{2}:?\d{2}))?)?"
)
_NUMERIC = re.compile(rf"(?P<a>\d{{1,4}})(?P<gap1>[./-])(?P<b>\d{{1,2}})(?P=gap1)(?P<c>\d{{1,4}}){_TIME}")
_NAMED = re.compile(
    rf"(?P<day>\d{{1,2}})(?P<gap1>[ -]|\. )(?P<month>[A-Za-z]{{3,9}})(?P=gap1)(?P<year>\d{{4}}|\d{{2}}){_TIME}"
)
_NAMED_US = re.compile(
    rf"(?P<month>[A-Za-z]{{3,9}}) (?P<day>\d{{1,2}})(?P<comma>,?) (?P<year>\d{{4}}){_TIME}"
)
_LIKE_DATE = re.compile(
    r"(?:\w{2,10}[.,]+ )?\d{1,2}(?:st|nd|rd|th|er|[.ºª])?[ -](?:of |de )?[^\W\d_]{3,10}\.?,?[ -](?:de )?'?(?:\d{4}|\d{2})"
    r"|(?:\w{2,10}[.,]+ )?MONTH(?:[ -]\d{1,2}(?:st|nd|rd|th)?)?,?[ /'’-]+(?:\d{4}|\d{2})|\d{4}[ /-]MONTH"
    r"|\d{4}(?:年|년) ?\d{1,2}(?:月|월)(?: ?\d{1,2}(?:日|일))?".replace(
        "MONTH", r"(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]{0,6}\.?"
    ),
    re.IGNORECASE,
)
_END_OF_DATE = re.compile(r"[T ,]+\d{1,2}:\d{2}.*")
_COMPACT = re.compile(r"(?:19|20)\d{2}(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01])")
_NAME_OF_DATE = re.compile(r"dat[eu]|day|time|_at\b|tag|jour|fecha|fech|data\b|дата|日", re.IGNORECASE)
MAX_CHARS = 40
MIN_COMPACT = 3
"""So many numbers of eight digits must be dates to count as such without a name that says so."""


@dataclass(frozen=True)
class DateFormat:
    """How the dates of a column are written.

    Attributes:
        format: The format of `strptime`, or `ISO8601`.
        is_ambiguous: Whether day and month could be exchanged.
        has_zones: Whether times have zones.
    """

    format: str
    is_ambiguous: bool = False
    has_zones: bool = False

    def with_month_first(self) -> DateFormat:
        """Return the other reading of an ambiguous format."""
        return DateFormat(_exchanged(self.format), self.is_ambiguous, self.has_zones)


def _exchanged(text: str) -> str:
    return text.replace("%d", "\0").replace("%m", "%d").replace("\0", "%m")


def date_format(values: Collection[str], name: str) -> DateFormat | None:
    """Return how distinct texts are written as dates; None if they are not all dates of one format."""
    if not values or max(map(len, values)) > MAX_CHARS:
        return None
    texts = list(map(str.strip, values))
    if all(map(_COMPACT.fullmatch, texts)):
        is_date = len(texts) >= MIN_COMPACT or _NAME_OF_DATE.search(name)
        return _proven(DateFormat("%Y%m%d"), texts) if is_date else None
    for pattern, build in ((_NUMERIC, _numeric), (_NAMED, _named), (_NAMED_US, _named)):
        matches = list(filter(None, map(pattern.fullmatch, texts)))
        if len(matches) == len(texts):
            found = build(matches)
            return found and _proven(found, texts)
    return None


def is_like_date(text: str) -> bool:
    """Return whether a text is a date, or a month of a year, in whatever form people write."""
    return bool(date_format([text], "") or _LIKE_DATE.fullmatch(_END_OF_DATE.sub("", text[:MAX_CHARS])))


def _numeric(matches: list[re.Match[str]]) -> DateFormat | None:
    parts = (match.group("a", "b", "c", "gap1", "zone") for match in matches)
    first, second, last, gaps, zones = map(list, zip(*parts, strict=True))
    time = _time(matches)
    if len(set(gaps)) > 1 or time is None:
        return None
    gap, has_zones = gaps[0], any(zones)
    if _widths(first) == {4}:
        if gap == "-" and _widths(second) == _widths(last) == {2}:
            return DateFormat(ISO, has_zones=has_zones)
        return DateFormat(f"%Y{gap}%m{gap}%d{time}", has_zones=has_zones)
    if _widths(last) not in ({4}, {2}) or max(_widths(first)) > 2:
        return None
    year = "%Y" if _widths(last) == {4} else "%y"
    day_first = f"%d{gap}%m{gap}{year}{time}"
    if max(map(int, first)) > 12:
        return DateFormat(day_first, has_zones=has_zones) if max(map(int, second)) <= 12 else None
    if max(map(int, second)) > 12:
        return DateFormat(_exchanged(day_first), has_zones=has_zones)
    return DateFormat(day_first, is_ambiguous=gap != ".", has_zones=has_zones)


def _widths(texts: Iterable[str]) -> set[int]:
    return set(map(len, texts))


def _named(matches: list[re.Match[str]]) -> DateFormat | None:
    time = _time(matches)
    if time is None:
        return None
    months = map(itemgetter("month"), matches)
    month = "%b" if _widths(months) == {3} else "%B"
    widths = _widths(map(itemgetter("year"), matches))
    gap_name = "comma" if "comma" in matches[0].groupdict() else "gap1"
    gaps = set(map(itemgetter(gap_name), matches))
    gap = gaps.pop()
    if gaps or len(widths) > 1:
        return None
    if gap_name == "comma":
        return DateFormat(f"{month} %d{gap} %Y{time}")
    year = "%Y" if widths == {4} else "%y"
    return DateFormat(f"%d{gap}{month}{gap}{year}{time}")


def _time(matches: list[re.Match[str]]) -> str | None:
    """Return the format of the times; empty without times, None if they differ."""
    formats = set(map(_time_of, matches))
    return formats.pop() if len(formats) == 1 else None


def _time_of(match: re.Match[str]) -> str:
    if match["hour"] is None:
        return ""
    hour = "%I" if match["half"] else "%H"
    second = ":%S" if match["second"] else ""
    fraction = f"{match['fraction'][0]}%f" if match["fraction"] else ""
    half = match["half"] and (" %p" if match["half"].startswith(" ") else "%p")
    zone = match["zone"] and (" %z" if match["zone"].startswith(" ") else "%z")
    return f"{match['gap']}{hour}:%M{second}{fraction}{half or ''}{zone or ''}"


def _proven(found: DateFormat, texts: list[str]) -> DateFormat | None:
    """Return the format if it reads all texts."""
    try:
        for text in texts:
            if found.format == ISO:
                datetime.date.fromisoformat(text[:10])
            else:
                datetime.datetime.strptime(text, found.format)
    except ValueError:
        return None
    return found
