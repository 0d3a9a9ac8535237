"""A table of text on its way to a profile: what is known of it, and which separators its numbers have."""

from __future__ import annotations

import itertools
from collections import Counter
from dataclasses import dataclass, field
from operator import attrgetter

from .columns import Column
from .dialect import Dialect
from .encoding import Text
from .layout import Layout
from .numbers import NumberFormat
from .source import Source


@dataclass
class Table:
    """A table of text on its way to a profile."""

    source: Source
    text: Text
    layout: Layout
    is_spaced: bool = False
    columns: list[Column] = field(default_factory=list)
    arguments: dict[str, str] = field(default_factory=dict)
    conversions: dict[str, str] = field(default_factory=dict)
    notes: list[str] = field(default_factory=list)
    hints: list[str] = field(default_factory=list)
    decimal: str = "."
    thousands: str = ""

    def columns_of(self, *kinds: str) -> list[Column]:
        """Return its columns of some kinds."""
        return [column for column in self.columns if column.kind in kinds]


def unique_names(table: Table) -> list[str]:
    """Return a name for each column, as pandas would make them."""
    names, unique = [*(table.layout.names or ())], list[str]()
    names += [""] * (table.layout.full_width - len(names))
    for index, name in enumerate(names):
        base = name.strip() or f"Unnamed: {index}"
        numbered = itertools.chain([base], map(f"{base}.{{}}".format, itertools.count(1)))
        unique.append(next(each for each in numbered if each not in unique))
    return unique


def dialect_arguments(dialect: Dialect, *, delimiter: str, no_quotes: str) -> dict[str, str]:
    """Return the arguments by which a reader of delimited text is told of a dialect.

    Args:
        dialect: What separates and quotes fields.
        delimiter: The name of the argument for the delimiter.
        no_quotes: The value for text in which quotes are characters as all others.
    """
    arguments = dict[str, str]()
    if dialect.delimiter != ",":
        arguments[delimiter] = quoted(dialect.delimiter)
    if not dialect.quote:
        arguments["quoting"] = no_quotes
    elif dialect.quote != '"':
        arguments["quotechar"] = quoted(dialect.quote)
    if dialect.escape:
        arguments["escapechar"] = quoted(dialect.escape)
    if dialect.is_padded:
        arguments["skipinitialspace"] = "True"
    return arguments


def quoted(text: str) -> str:
    """Return a separator as a literal in double quotes."""
    return f'"{repr(text)[1:-1]}"'


def separators(table: Table) -> tuple[str, str]:
    """Return the separators of most numbers of the file."""
    formats = list(filter(None, map(attrgetter("number"), table.columns_of("number"))))
    plain = list(filter(attrgetter("is_plain"), formats))
    decimal = _most_common("decimal", plain) or _most_common("decimal", formats)
    if not decimal:
        decimal = "," if table.layout.dialect.delimiter == ";" else "."
        if ambiguous := next(filter(None, map(attrgetter("ambiguous"), formats)), ""):
            what = f"{quoted(ambiguous)} is a decimal or a thousands separator"
            add_note(table, f"whether {what} is not certain")
    resolved = [number.resolved(decimal) for number in plain]
    separator = _most_common("thousands", resolved)
    has_decimals = decimal in map(attrgetter("decimal"), resolved)
    decimal = decimal if has_decimals or separator == "." else "."
    # Invariant: the two are never the same; columns in the other notation are converted one by one.
    return decimal, separator if separator != decimal else ""


def _most_common(kind: str, formats: list[NumberFormat]) -> str:
    """Return the most common separator of a kind that pandas takes; empty if no number has one for certain."""
    counts = Counter(filter(_is_separator, map(attrgetter(kind), formats)))
    return max(counts, key=counts.__getitem__, default="")


def _is_separator(separator: str) -> bool:
    """Return whether pandas takes a separator."""
    return len(separator) == 1 and separator.isascii()


def is_read_as_number(table: Table, column: Column) -> bool:
    """Return whether `decimal` and `thousands` are enough to read a column of numbers."""
    if column.number is None or not column.number.is_plain:
        return False
    number = column.number.resolved(table.decimal)
    return number.decimal in ("", table.decimal) and number.thousands in ("", table.thousands)


def add_note(table: Table, note: str) -> None:
    """Add once what people are told as well: what reading changes, leaves out, or cannot know."""
    if note not in table.notes:
        table.notes.append(note)


def add_hint(table: Table, hint: str) -> None:
    """Add once what only helps to write a program."""
    if hint not in table.hints:
        table.hints.append(hint)
