"""Numbers as people write them: in English, and in the notations of other languages."""

from __future__ import annotations

import math
import re
import unicodedata
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

_APART = "'’_\u00a0\u202f\u2009"
"""What stands between groups of digits besides commas, points and blanks."""

NUMBER = re.compile(
    r"(?<![\w.])[-+]?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w]|\.\d)|(?<![\w.])[-+]?\.\d+(?!\w)"
)
"""A number as English and programs write it."""
WRITTEN_NUMBER = re.compile(
    rf"(?<![\w.,])[-+]?\d+(?:[.,{_APART} ]\d{{3}}(?!\d))*(?:[.,]\d+)?(?:[eE][-+]?\d+)?"
)
"""A number in any notation."""
GROUPED_NUMBER = re.compile(r"[-+]?\d{1,3}(?:(?:,\d{3})+(?:\.\d+)?|(?:\.\d{3})+(?:,\d+)?)")
"""A number with thousands apart, by commas or by points."""
_DECIMAL_COMMA = re.compile(rf"(?<![\d.,])\d{{1,3}}(?:[.{_APART} ]\d{{3}}){{0,12}}+,\d{{1,2}}(?![\d.,])")
"""A number whose comma is surely that before decimals."""
_GAP = re.compile(rf"(?<=\d)[{_APART}](?=\d{{3}}(?!\d))")
_BLANK = re.compile(r"(?<=\d) (?=\d{3}(?!\d))")
_LAKH = re.compile(r"(?<![\d.,])\d{1,2}(?:,\d{2})+,\d{3}(?![\d,])")
_POWER = re.compile(
    r"(?:(\d)\s*(?:[×x*·⋅]|\\times)\s*)?\b10(?:(?:\^|\*\*)\{?([-+]?\d{1,4})\}?|([⁻⁺]?[⁰¹²³⁴-⁹]{1,4}))"
)
_BESIDE = re.compile(
    r"(?<=[はがも是为為于於])(?=-\d)|(?<=\d)(?=[^\W\d_A-Za-zÀ-ɏ])|(?<=[^\W\d_A-Za-zÀ-ɏ])(?=\d)"
)
_RAISED = str.maketrans("⁰¹²³⁴⁵⁶⁷⁸⁹⁻⁺", "0123456789-+")
_COMMAS = str.maketrans(",.", ".,")
_MAX_DIGITS = 4000


@dataclass(frozen=True)
class Number:
    """A number as it is written."""

    text: str

    @classmethod
    def of(cls, data: Any) -> Number | None:
        """Return a number, or text that is nothing but one; None for anything else."""
        if isinstance(data, bool) or not isinstance(data, int | float | str):
            return None
        try:
            text = str(data).strip().replace("\N{MINUS SIGN}", "-")
        except ValueError:  # An integer of more than 4300 digits.
            return None
        return cls(text) if NUMBER.fullmatch(text) else None

    @property
    def whole(self) -> int | None:
        """Its value if it is written as an integer."""
        digits = self.text.replace(",", "")
        if len(digits) >= _MAX_DIGITS or not re.fullmatch(r"[-+]?\d+", digits):
            return None
        return int(digits)

    @property
    def value(self) -> float:
        """Its value as a float."""
        return float(self.text.replace(",", ""))

    @property
    def decimals(self) -> int:
        """The number of its decimals."""
        return len(self.text.lower().partition("e")[0].partition(".")[2])

    def is_near(self, other: Number) -> bool:
        """Return whether both are equal, up to rounding to two decimals or more."""
        if self.whole is not None and other.whole is not None:
            return self.whole == other.whole
        if float("inf") in (abs(self.value), abs(other.value)):
            return self.text == other.text
        difference = abs(self.value - other.value)
        if difference <= 1e-9 * max(abs(self.value), abs(other.value)):
            return True
        decimals = min(self.decimals, other.decimals)
        return (
            decimals >= 2 and bool(self.value and other.value) and difference <= 0.5000001 * 10.0**-decimals
        )


def ascii_digits(text: str) -> str:
    """Return text with the digits, separators and minus signs of other scripts as those of ASCII."""
    if text.isascii():
        return text
    digits = {ord(sign): str(unicodedata.decimal(sign)) for sign in set(text) if sign.isdecimal()}
    return text.translate({**digits, ord("٫"): ".", ord("٬"): ",", ord("\u2212"): "-"})


def values_in(text: str, limit: int | None = None) -> list[float]:
    """Return the values of the first numbers of a text in English."""
    return [Number(found).value for found in NUMBER.findall(text)[:limit]]


def possible_values(written: str) -> Iterator[float]:
    """Yield the values that a number may have: comma or point may separate decimals or thousands."""
    plain = re.sub(f"[{_APART} ]", "", written)
    has_decimal_comma = plain.count(",") == 1 and "." not in plain
    texts = [plain.replace(",", "." if has_decimal_comma else "")]
    if GROUPED_NUMBER.fullmatch(plain):
        texts += [plain.replace(",", ""), plain.replace(".", "").replace(",", ".")]
    for text in dict.fromkeys(texts):
        with suppress(ValueError):
            value = float(text)
            if math.isfinite(value):
                yield value


def english_notations(text: str) -> Iterator[str]:
    """Yield a text as it is, and with its only number with a decimal comma, such as 1.234,50 or 1 234,5, in English.

    Invariant: a doubt stays a doubt, as right answers are counted by it; `readings` is for alarms, and takes any reading.
    """
    yield text
    found = _DECIMAL_COMMA.findall(text)
    if len(found) == 1:
        plain = re.sub(rf"[.{_APART}\s]", "", found[0]).replace(",", ".")
        yield text.replace(found[0], plain)


def readings(text: str) -> Iterator[str]:
    """Yield the ways to read a text: comma or point as decimal separator, spaces within numbers."""
    text = normalized(text)
    for reading in dict.fromkeys((text, _BLANK.sub("", text))):
        yield reading
        yield reading.translate(_COMMAS)


def normalized(text: str) -> str:
    """Return text with numbers written as in English, separated from scripts that use no spaces."""
    text = _LAKH.sub(lambda match: match[0].replace(",", ""), _GAP.sub("", ascii_digits(text)))
    return apart(_POWER.sub(_scientific, text))


def apart(text: str) -> str:
    """Return text with its numbers separated from scripts that use no spaces."""
    return _BESIDE.sub(" ", text)


def _scientific(match: re.Match[str]) -> str:
    return f"{match[1] or 1}e{match[2] or match[3].translate(_RAISED)}"


def mantissa(number: float) -> float:
    """Return what distinguishes a number from others but for a power of ten; -1 for 0."""
    if not number or not math.isfinite(number):
        return -1.0
    return float(f"{number:.9e}".partition("e")[0])
