"""Numbers in text."""

from __future__ import annotations

import re
import unicodedata
from dataclasses import dataclass

NUMBER = re.compile(
    r"(?<![\w.])[-+]?(?:\d{1,3}(?:,\d{3})+(?!\d)|\d+)(?:\.\d+)?(?:[eE][-+]?\d+)?(?![\w]|\.\d)|(?<![\w.])[-+]?\.\d+(?!\w)"
)


_MAX_DIGITS = 4000


@dataclass(frozen=True)
class Number:
    """A number as it is written."""

    text: str

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
