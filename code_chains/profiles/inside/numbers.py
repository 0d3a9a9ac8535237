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
_ODD_SIGN = re.compile(rf"−|[+-][{SPACES}]")
_POINT = re.compile("[.,]")
_SAME_UNITS = {
    "€": "eur",
    "$": "usd",
    "us$": "usd",
    "£": "gbp",
    "¥": "jpy",
    "₹": "inr",
    "zł": "pln",
    "kč": "czk",
    "r$": "brl",
    "fr": "chf",
}
_GROUPS = re.compile(r"[1-9]\d{0,2}(?:\D\d{3})+|[1-9]\d?(?:,\d\d)+,\d{3}")
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
    """What the numbers of a column show of how they are written."""

    decimals: set[str] = field(default_factory=set)
    thousands: set[str] = field(default_factory=set)
    either: set[str] = field(default_factory=set)
    units: set[str] = field(default_factory=set)
    bodies: list[str] = field(default_factory=list)
    has_parentheses: bool = False
    has_trailing_minus: bool = False
    has_odd_signs: bool = False
    is_whole: bool = True
    is_digits: bool = True
    exponents: list[str] = field(default_factory=list)
    is_phone: bool = True

    def add(self, match: re.Match[str]) -> bool:
        """Take in what may be a number; return whether it can be one."""
        body = match["body"]
        if bool(match["open"]) != bool(match["close"]) or not self._add_separators(body):
            return False
        self.bodies.append(body)
        self.units.update(filter(None, match.group("before", "after")))
        self.has_parentheses |= bool(match["open"])
        self.has_trailing_minus |= bool(match["trailing"])
        self.has_odd_signs |= bool(_ODD_SIGN.search(match[0]))
        self.is_whole &= body.isdigit() and not match["exponent"]
        self.is_digits &= body.isdigit()
        self.exponents += filter(None, [match["exponent"]])
        self.is_phone &= match["sign"] == "+" and len(body) >= 7
        return True

    def _add_separators(self, body: str) -> bool:
        self.thousands.update({*SPACES, *QUOTES}.intersection(body))
        points = _POINT.findall(body)
        if len(set(points)) == 2:
            self.decimals.add(points[-1])
            self.thousands.add(points[0])
            return points.count(points[-1]) == 1 and _is_grouped(body.rpartition(points[-1])[0])
        if len(points) == 1:
            self._add_single(body, points[0])
            return _is_grouped(body.partition(points[0])[0])
        self.thousands.update(points)
        return _is_grouped(body)

    def _add_single(self, body: str, point: str) -> None:
        before, _, after = body.partition(point)
        if len(after) != 3 or not 1 <= len(before) <= 3 or before.startswith("0"):
            self.decimals.add(point)
        else:
            self.either.add(point)

    def format(self) -> NumberFormat | None:
        """Return how the numbers are written; None if they contradict each other."""
        either = self.either - self.decimals - self.thousands
        # Two of `either` are "1,234" and "1.234" in one column.
        if len(self.units) > MAX_UNITS or max(len(self.decimals), len(either)) > 1:
            return None
        if self.decimals & self.thousands:
            return None
        decimal, ambiguous = "".join(self.decimals), "".join(either)
        if ambiguous:
            decimal, ambiguous = self._decided(decimal, ambiguous)
        return NumberFormat(
            decimal=decimal,
            thousands="".join(sorted(self.thousands)),
            ambiguous=ambiguous,
            units=tuple(sorted(self.units)),
            has_parentheses=self.has_parentheses,
            has_trailing_minus=self.has_trailing_minus,
            has_odd_signs=self.has_odd_signs,
            is_identifier=self._is_identifier(),
        )

    def _decided(self, decimal: str, separator: str) -> tuple[str, str]:
        """Return the decimal separator, and a separator that may be either if the other numbers do not tell."""
        plain = list(filter(str.isdigit, self.bodies))
        if not (decimal or plain or self.thousands & {".", ","}):
            return "", separator
        # Invariant: who writes 1.234 for a thousand writes 999 without a point, and no 1234.
        if not decimal and (self.thousands & {".", ","} or max(map(len, plain)) > 3):
            return separator, ""
        self.thousands.add(separator)
        return decimal, ""

    def _is_identifier(self) -> bool:
        if self.is_whole:
            return not self.units and (self.is_phone or any(map(_is_code, self.bodies)))
        # Invariant: some codes of digits and letters look like powers of ten; numbers have a sign or a point there.
        are_some = 0 < len(self.exponents) < len(self.bodies)
        return self.is_digits and are_some and all(each[1].isdigit() for each in self.exponents)


def _is_code(digits: str) -> bool:
    """Return whether digits have leading zeros, or are too many for an exact number."""
    return (len(digits) > 1 and digits.startswith("0")) or (len(digits) > 15 and int(digits) > MAX_EXACT)


def _meaning(unit: str) -> str:
    """Return what a unit is written like, whatever its sign, case and number."""
    text = unit.casefold().rstrip(".")
    text = text.removesuffix("s") if len(text) > 3 else text
    return _SAME_UNITS.get(text, text)


def _is_grouped(digits: str) -> bool:
    """Return whether digits have no separators, or one after every three."""
    return not digits or digits.isdigit() or _GROUPS.fullmatch(digits) is not None


def number_format(values: Collection[str]) -> NumberFormat | None:
    """Return how distinct texts are written as numbers; None if they are not numbers."""
    evidence = _Evidence()
    for value in values:
        match = _NUMBER.fullmatch(value.strip()) if len(value) <= MAX_CHARS else None
        if match is None or not evidence.add(match):
            return None
    return evidence.format() if values else None
