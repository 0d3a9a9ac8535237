"""How numbers are written in a column: decimal and thousands separators, currencies, percent, signs."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass, field, replace

SPACES = " \u00a0\u202f\u2009"
QUOTES = "'\u2019"
_CURRENCY = r"[€$£¥₹₽₺₩]|R\$|US\$|EUR|USD|GBP|CHF|JPY|CAD|AUD|SEK|NOK|DKK|PLN|CZK|BRL|INR|Fr\.|kr\.?|zł|Kč"
_UNIT_AFTER = rf"{_CURRENCY}|[%‰°]|kg|g|mg|t|km|cm|mm|m|l|ml|kWh|MWh|h|min|s|ms|(?<=[{SPACES}])[A-Za-zµ°][A-Za-z/²³°]{{0,5}}"
_BODY = rf"\d[\d.,{SPACES}{QUOTES}]*\d|\d|[.,]\d+"
_NUMBER = re.compile(
    rf"(?P<open>\()?[{SPACES}]*(?P<sign>[+\-−]?)[{SPACES}]*(?P<before>{_CURRENCY})?[{SPACES}]*(?P<sign2>[+\-−]?)"
    rf"(?P<body>{_BODY})(?P<exponent>[eE][+-]?\d{{1,3}})?[{SPACES}]*(?P<after>{_UNIT_AFTER})?[{SPACES}]*(?P<trailing>-)?(?P<close>\))?"
)
_SAME_UNITS = (
    *(
        {"€", "eur"},
        {"$", "us$", "usd"},
        {"£", "gbp"},
        {"¥", "jpy"},
        {"₹", "inr"},
        {"zł", "pln"},
        {"kč", "czk"},
    ),
    *({"r$", "brl"}, {"fr", "chf"}),
)
_GROUPS = re.compile(r"[1-9]\d{0,2}(?:\D\d{3})+")
MAX_UNITS = 2
"""A column of more units than these is text, such as house numbers."""
MAX_CHARS = 60
MAX_EXACT = 2**53


@dataclass(frozen=True)
class NumberFormat:
    """How the numbers of a column are written.

    Attributes:
        decimal: The decimal separator; empty if there is none.
        thousands: The thousands separator; several characters if the column mixes them.
        ambiguous: A separator that is either, such as in `1,234`.
        units: Currencies, percent signs and units around the digits.
        has_parentheses: Whether negative numbers are in parentheses.
        has_trailing_minus: Whether a minus sign follows the digits.
        has_odd_signs: Whether there are signs that `float` does not read.
        is_identifier: Whether digits are a name: leading zeros, or too many for exact numbers.
    """

    decimal: str = ""
    thousands: str = ""
    ambiguous: str = ""
    units: tuple[str, ...] = ()
    has_parentheses: bool = False
    has_trailing_minus: bool = False
    has_odd_signs: bool = False
    is_identifier: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether only separators distinguish it from what Python reads."""
        return not (self.units or self.has_parentheses or self.has_trailing_minus or self.has_odd_signs)

    @property
    def has_mixed_units(self) -> bool:
        """Whether some numbers are in one unit and some in another, so that they cannot be compared as they are."""
        return len(set(map(_meaning, self.units))) > 1

    def resolved(self, decimal: str) -> NumberFormat:
        """Return the format with the meaning of an ambiguous separator, in a file with this decimal separator."""
        if not self.ambiguous:
            return self
        if self.ambiguous == decimal:
            return replace(self, decimal=decimal, ambiguous="")
        return replace(self, thousands=self.thousands + self.ambiguous, ambiguous="")


@dataclass
class _Evidence:
    decimals: set[str] = field(default_factory=set)
    thousands: set[str] = field(default_factory=set)
    either: set[str] = field(default_factory=set)

    def add(self, body: str) -> bool:
        """Take a number in; return whether it can be one."""
        for separator in set(body) & {*SPACES, *QUOTES}:
            self.thousands.add(separator)
        points = [character for character in body if character in ".,"]
        if len(set(points)) == 2:
            self.decimals.add(points[-1])
            self.thousands.add(points[0])
            return points.count(points[-1]) == 1 and _is_grouped(body.rpartition(points[-1])[0])
        if len(points) == 1:
            self._add_single(body, points[0])
            return _is_grouped(body.partition(points[0])[0])
        if points:
            self.thousands.add(points[0])
        return _is_grouped(body)

    def _add_single(self, body: str, point: str) -> None:
        before, _, after = body.partition(point)
        if len(after) != 3 or not 1 <= len(before) <= 3 or before.startswith("0"):
            self.decimals.add(point)
        else:
            self.either.add(point)


def _meaning(unit: str) -> str:
    """Return what a unit is written like, whatever its sign, case and number."""
    text = unit.casefold().rstrip(".")
    text = text.removesuffix("s") if len(text) > 3 else text
    return next((min(same) for same in _SAME_UNITS if text in same), text)


def _is_grouped(digits: str) -> bool:
    """Return whether digits have no separators, or one after every three."""
    return not digits or digits.isdigit() or _GROUPS.fullmatch(digits) is not None


def number_format(values: Collection[str]) -> NumberFormat | None:
    """Return how distinct texts are written as numbers; None if they are not numbers."""
    evidence, units, matches = _Evidence(), set[str](), []
    for value in values:
        match = _NUMBER.fullmatch(value.strip()) if len(value) <= MAX_CHARS else None
        if match is None or bool(match["open"]) != bool(match["close"]) or not evidence.add(match["body"]):
            return None
        units |= {unit for unit in (match["before"], match["after"]) if unit}
        matches.append(match)
    if not matches or len(units) > MAX_UNITS or len(evidence.decimals) > 1:
        return None
    if evidence.decimals & evidence.thousands:
        return None
    return _format(evidence, units, matches)


def _format(evidence: _Evidence, units: set[str], matches: list[re.Match[str]]) -> NumberFormat | None:
    decimal = "".join(evidence.decimals)
    either = evidence.either - evidence.decimals - evidence.thousands
    if len(either) == 2:  # "1,234" and "1.234" in one column.
        return None
    ambiguous = "".join(either)
    if ambiguous and (decimal or evidence.thousands & {".", ","}):
        evidence.thousands |= either if decimal else set()
        decimal, ambiguous = decimal or ambiguous, ""
    bodies = [match["body"] for match in matches]
    if ambiguous and (plain := [body for body in bodies if body.isdigit()]):
        # Invariant: who writes 1.234 for a thousand writes 999 without a point, and no 1234.
        if max(map(len, plain)) <= 3:
            evidence.thousands |= either
        else:
            decimal = ambiguous
        ambiguous = ""
    is_whole = all(body.isdigit() for body in bodies) and not any(match["exponent"] for match in matches)
    return NumberFormat(
        decimal=decimal,
        thousands="".join(sorted(evidence.thousands)),
        ambiguous=ambiguous,
        units=tuple(sorted(units)),
        has_parentheses=any(match["open"] for match in matches),
        has_trailing_minus=any(match["trailing"] for match in matches),
        has_odd_signs=any("−" in match[0] or re.search(rf"[+-][{SPACES}]", match[0]) for match in matches),
        is_identifier=is_whole and not units and _are_identifiers(matches),
    )


def _are_identifiers(matches: list[re.Match[str]]) -> bool:
    bodies = [match["body"] for match in matches]
    has_leading_zero = any(len(body) > 1 and body.startswith("0") for body in bodies)
    is_phone = all(match["sign"] == "+" and len(match["body"]) >= 7 for match in matches)
    return has_leading_zero or is_phone or any(len(body) > 15 and int(body) > MAX_EXACT for body in bodies)
