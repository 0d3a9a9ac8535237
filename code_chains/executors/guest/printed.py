"""What a program printed, and comparisons in tests that know it from other text."""

from __future__ import annotations

import reprlib
from collections.abc import Callable
from typing import Any

from . import comparing
from .proxies import Remote

_PLAIN = (int, float, bool, str, bytes, list, tuple, dict, set)


class Output(str):
    """Text that the program printed, which is compared as people read it.

    Args:
        parts: The whole, and if calls have printed something, that alone: whichever a test means.
    """

    parts: tuple[str, ...]

    def __new__(cls, *parts: str) -> Output:
        """Make the text whose first part is the whole."""
        output = super().__new__(cls, parts[0])
        output.parts = parts
        return output

    def _each(self, change: Callable[..., str], *args: Any) -> Output:
        return Output(*(change(part, *args) for part in self.parts))

    def strip(self, chars: str | None = None) -> Output:
        """Strip each part."""
        return self._each(str.strip, chars)

    def rstrip(self, chars: str | None = None) -> Output:
        """Strip each part."""
        return self._each(str.rstrip, chars)

    def lower(self) -> Output:
        """Convert each part."""
        return self._each(str.lower)

    def split(self, *args: Any, **options: Any) -> list[Any]:
        """Split the whole."""
        return list(map(Output, super().split(*args, **options)))

    def splitlines(self, keepends: bool = False) -> list[Any]:
        """Split the whole into lines."""
        return list(map(Output, super().splitlines(keepends)))


def is_printed(text: Any) -> bool:
    """Return whether a text is what the program printed."""
    return isinstance(text, Output)


class Comparisons:
    """How tests compare.

    Attributes:
        weak: Why what was compared says little; empty if it does not.
    """

    def __init__(self) -> None:
        self.weak = ""
        self.brief = reprlib.Repr()
        self.brief.maxstring = self.brief.maxother = 200
        self.brief.maxlist = self.brief.maxdict = self.brief.maxset = self.brief.maxtuple = 20

    def same(self, got: Any, expected: Any, how: str = "") -> Any:
        """Compare as tests mean `==`: printed text as people read it, unless `how` is "exact", all else as data."""
        if how == "exact":
            return got == expected
        if isinstance(got, str) and isinstance(expected, str) and (is_printed(got) or is_printed(expected)):
            left, right = getattr(got, "parts", (got,)), getattr(expected, "parts", (expected,))
            return any(comparing.same_text(one, other) for one in left for other in right)
        if isinstance(got, list) and isinstance(expected, list) and any(map(is_printed, [*got, *expected])):
            return len(got) == len(expected) and all(map(self.same, got, expected))
        return comparing.equal(got, expected)

    def differ(self, got: Any, expected: Any, how: str = "") -> Any:
        """Compare as tests mean `!=`."""
        outcome = self.same(got, expected, how)
        return not outcome if isinstance(outcome, bool) else got != expected

    def holds(self, part: Any, text: Any) -> bool:
        """Return whether a text that people read has a part; see `comparing`."""
        if not isinstance(part, str) or not is_printed(text):
            return bool(part in text)
        if comparing.says_little(text, part):
            self.weak = f"The output has so many numbers that {part} among them says little."
        return comparing.holds_text(text, part)

    def explain(
        self, source: str, left: Any, operator: str, right: Any, verb: str = "gave", /, **arguments: Any
    ) -> str:
        """Say what a comparison found, and for which arguments if they are plain."""
        try:
            got, wanted = self.brief.repr(left), self.brief.repr(right)
            plain = {name: value for name, value in arguments.items() if type(value) in _PLAIN}
            named = ", ".join(f"{name} = {self.brief.repr(value)}" for name, value in plain.items())
        except Exception:  # A value may have no text, such as a whole number of 5,000 digits.
            return f"{source} {operator} … does not hold"
        given = f" for {named}" if named else ""
        if operator != "==":
            found = "" if source == got else f": it is {got}"
            return f"{source} {operator} {wanted} does not hold{given}{found}"
        texts = isinstance(left, str) and isinstance(right, str)
        hint = comparing.difference(left, right) if texts else ""
        if got == wanted and isinstance(left, Remote):
            hint = f"it is an object of the program's own class {left._kind}"
        said = f"{source} {verb} {got}, expected {wanted}{given}"
        return f"{said}: {hint}" if hint else said

    def all(self, value: Any) -> Any:
        """Evaluate `value.all()`, which must not hold because there is nothing."""
        if comparing.size(value) == 0:
            raise AssertionError("Nothing was compared: the result is empty")
        return value.all()
