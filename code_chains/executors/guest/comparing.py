"""Whether a value is what tests expect: numbers up to rounding, text of a person's reading by its words.

Whole numbers and truth values are compared exactly. Text that a program printed is compared as contest judges do: by
words, without regard to blanks and capitals, and numbers in it up to rounding.
"""

from __future__ import annotations

import functools
import itertools
import math
import re
from typing import Any

RELATIVE, ABSOLUTE = 1e-9, 1e-12
MAX_WHOLE_ERROR, MAX_ULPS = 1e-9, 4
"""By how much a float that stands for a whole number may be off."""
SHOWN_LINES, SHOWN_CHARS = 10, 60
WORDY = 100
"""With more different numbers than this, an output that has a certain one says little."""
NUMBER = re.compile(r"(?<![\w.])[-+]?(?:\d+(?:\.\d*)?|\.\d+)(?:[eE][-+]?\d+)?")
WHOLE = re.compile(r"[-+]?\d+")


def plain(value: Any) -> Any:
    """Return a number or an array of NumPy as Python's own."""
    return value.tolist() if type(value).__module__ == "numpy" and hasattr(value, "tolist") else value


def equal(got: Any, expected: Any) -> Any:
    """Compare as `==` does, but floats up to rounding and truth values with truth values alone."""
    if size(got) == 0 or size(expected) == 0:  # An empty array equals anything.
        return size(got) == size(expected) and bool(all_of(got == expected))
    outcome = got == expected
    got, expected = plain(got), plain(expected)
    if type(plain(outcome)) is not bool or (
        type(got) is not type(expected) and not are_numbers(got, expected)
    ):
        return outcome
    return same(got, expected, is_exact=True) if is_data(got) else outcome


def all_of(outcome: Any) -> Any:
    return outcome.all() if hasattr(outcome, "all") else outcome


def size(value: Any) -> int | None:
    """Return the number of items of an array or a table; None for what is none."""
    count = getattr(value, "size", None) if hasattr(value, "dtype") or hasattr(value, "dtypes") else None
    return count if isinstance(count, int) else None


def is_data(value: Any) -> bool:
    return isinstance(value, (int, float, complex, list, tuple, dict))


def are_numbers(*values: Any) -> bool:
    return all(isinstance(value, (int, float)) for value in values)


def same(got: Any, expected: Any, *, is_exact: bool = False) -> bool:
    """Compare data; a tuple may stand for a list, as JSON has no tuples, unless it is to be exact."""
    got, expected = plain(got), plain(expected)
    if isinstance(got, bool) or isinstance(expected, bool):
        return type(got) is type(expected) and got == expected
    if are_numbers(got, expected):
        return near(got, expected)
    each = functools.partial(same, is_exact=is_exact)
    if isinstance(got, (list, tuple)) and isinstance(expected, (list, tuple)):
        if is_exact and isinstance(got, list) is not isinstance(expected, list):
            return False
        return len(got) == len(expected) and all(map(each, got, expected))
    if isinstance(got, dict) and isinstance(expected, dict):
        return got.keys() == expected.keys() and all(each(got[key], expected[key]) for key in expected)
    equals: Any = type(got).__eq__
    return equals(got, expected) is True


def near(got: float, expected: float) -> bool:
    """Compare numbers: whole ones exactly, floats up to rounding."""
    if isinstance(got, int) and isinstance(expected, int):
        return got == expected
    try:
        got, expected = float(got), float(expected)
    except OverflowError:
        return False
    if got != got and expected != expected:
        return True
    is_near = math.isclose(got, expected, rel_tol=RELATIVE, abs_tol=0.0 if expected else ABSOLUTE)
    tolerance = max(MAX_WHOLE_ERROR, MAX_ULPS * math.ulp(expected))
    return is_near and (not expected.is_integer() or abs(got - expected) <= tolerance)


def same_text(got: str, expected: str) -> bool:
    """Compare what people read: by words, without regard to blanks and capitals, and numbers up to rounding."""
    words, others = got.casefold().split(), expected.casefold().split()
    return words == others or (len(words) == len(others) and all(map(same_word, words, others)))


def same_lines(got: str, expected: str) -> bool:
    """Compare line by line, without blanks at their ends and empty lines after the last."""
    return lines_of(got) == lines_of(expected)


def lines_of(text: str) -> list[str]:
    """Return the lines of an output as they are compared."""
    return [line.rstrip() for line in text.rstrip().split("\n")]


def same_output(got: str, expected: str, how: str = "words", tolerance: float | None = None) -> bool:
    """Compare an output as an example says; see `verification.expectations.examples.Compare`."""
    if tolerance is not None:
        return _within(got, expected, tolerance)
    return {"exact": str.__eq__, "lines": same_lines, "words": same_text}[how](got, expected)


def _within(got: str, expected: str, tolerance: float) -> bool:
    """Compare words, of which numbers may differ."""
    words, others = (" ".join(NUMBER.sub("0", text).casefold().split()) for text in (got, expected))
    pairs = zip(map(float, NUMBER.findall(got)), map(float, NUMBER.findall(expected)), strict=False)
    return words == others and all(abs(one - other) <= tolerance for one, other in pairs)


def beside(got: str, expected: str) -> str:
    """Show the lines of two outputs beside each other, from the first that differ; empty for outputs of one line."""
    printed, wanted = lines_of(got), lines_of(expected)
    pairs = list(itertools.zip_longest(wanted, printed))
    first = next((number for number, (one, other) in enumerate(pairs) if one != other), None)
    if len(pairs) < 2 or first is None:
        return ""
    shown = [(_column(one), _column(other)) for one, other in pairs[first : first + SHOWN_LINES]]
    width = max(len("expected"), *(len(one) for one, _ in shown))
    rows = [f"{one:<{width}} | {other}" for one, other in [("expected", "printed"), *shown]]
    return f"from line {first + 1} on:\n" + "\n".join(rows)


def _column(line: str | None) -> str:
    return "(no line)" if line is None else line[:SHOWN_CHARS]


def same_word(got: str, expected: str) -> bool:
    if got == expected:
        return True
    numbers, others = NUMBER.findall(got), NUMBER.findall(expected)
    has_shape = NUMBER.sub("0", got) == NUMBER.sub("0", expected)
    return has_shape and len(numbers) == len(others) and all(map(same_number, numbers, others))


def same_number(got: str, expected: str) -> bool:
    if re.match("[-+]?0[0-9]", expected):  # Its zeros are meant.
        return got == expected
    if WHOLE.fullmatch(got) and WHOLE.fullmatch(expected):
        return got.lstrip("+").lstrip("0") == expected.lstrip("+").lstrip("0")
    return near(float(got), float(expected))


def holds_text(text: str, part: str) -> bool:
    """Return whether a text that people read has a part: a number as such, words without regard to blanks and capitals."""
    if not NUMBER.fullmatch(part.strip()):
        return " ".join(part.casefold().split()) in " ".join(text.casefold().split())
    if WHOLE.fullmatch(part.strip()):
        numbers = NUMBER.findall(re.sub(r"(?<=\d),(?=\d{3}(?!\d))", "", text))
        return part in text and any(
            same_number(number, part.strip()) for number in [*numbers, *NUMBER.findall(text)]
        )
    # Fewer decimals than were printed are meant to be a beginning.
    return re.search(rf"(?<![\d.]){re.escape(part.strip())}", text) is not None


def says_little(text: str, part: str) -> bool:
    """Return whether a text has so many numbers that it may well have this one by chance."""
    return bool(WHOLE.fullmatch(part.strip())) and len(set(NUMBER.findall(text))) > WORDY


def difference(got: str, expected: str) -> str:
    """Return what alone distinguishes two texts that a reader takes for the same; empty if they say something else."""
    if got.split() == expected.split():
        return "check your blanks"
    return "check your blanks and capitals" if same_text(got, expected) else ""
