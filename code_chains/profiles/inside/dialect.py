"""The dialect of delimited text: what separates fields and what quotes them, and the records that it makes of a text."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import attrgetter
from typing import Any

from .dates import date_format
from .numbers import number_format

DELIMITERS = ",;\t|"
RARE_DELIMITERS = "~^¦§\x01\x1f "
"""Separators that are believed only if they divide all lines well."""
MAX_CELLS, MAX_ROWS, MIN_ROWS = 100_000, 2_000, 12
"""How much of a table is looked at field by field."""
MIN_SCORE, SURE = 0.1, 1.3
MAX_DIVIDED_SHARE = 0.1
"""More rows in which quotes are divided mean another delimiter."""
HEAD_CHARS, HEAD_LINES = 200_000, 300
COMMENT_MARKS = "#%!"
MAX_SPACED_TITLES, MIN_UNTITLED = 12, 3
QUOTES_BONUS = 0.4
"""How much surer spaces are as separators if there are some in quotes in each row, or the first row is the shorter one."""
_DECIMAL_COMMA = re.compile(r"\s*[+-]?\d+,\d{1,2}\s*")


@dataclass
class Row:
    """One record: its fields, its number, and the physical lines that it takes; all are counted from zero."""

    fields: list[str]
    index: int
    line: int
    next_line: int

    @cached_property
    def cells(self) -> list[str]:
        """The fields without blanks around them."""
        return list(map(str.strip, self.fields))

    @property
    def width(self) -> int:
        """How many fields it has."""
        return len(self.fields)

    @property
    def is_blank(self) -> bool:
        """Whether it has no field with text."""
        return not any(self.cells)

    @property
    def is_comment(self) -> bool:
        """Whether it is a line that begins with a mark of comments."""
        return self.width == 1 and self.fields[0][:1] in COMMENT_MARKS


@dataclass(frozen=True)
class Dialect:
    """What separates and quotes fields.

    Attributes:
        delimiter: What is between two fields.
        quote: What is around fields; empty if quotes are characters as all others.
        escape: What is before a quote within quotes, if it is not doubled.
        is_padded: Whether blanks follow delimiters.
    """

    delimiter: str
    quote: str = '"'
    escape: str = ""
    is_padded: bool = False

    def records(self, text: str) -> Iterator[list[str]]:
        """Return the records of a text, with `line_num` as a reader of the module csv."""
        quoting: dict[str, Any] = {"quotechar": self.quote} if self.quote else {"quoting": csv.QUOTE_NONE}
        return csv.reader(
            io.StringIO(text, newline=""),
            delimiter=self.delimiter,
            escapechar=self.escape or None,
            skipinitialspace=self.is_padded,
            **quoting,
        )


def read_rows(text: str, dialect: Dialect, *, max_rows: int = MAX_ROWS) -> tuple[list[Row], bool]:
    """Read the first rows, and whether these are all."""
    reader: Any = dialect.records(text)
    rows, line, cells = list[Row](), 0, 0
    try:
        for fields in reader:
            rows.append(Row(fields, len(rows), line, reader.line_num))
            line = reader.line_num
            cells += len(fields)
            if len(rows) >= max_rows or (cells > MAX_CELLS and len(rows) >= MIN_ROWS):
                return rows, next(reader, None) is None
    except csv.Error:
        return rows, False
    return rows, True


def find_dialect(text: str) -> tuple[Dialect, float]:
    """Return the dialect, and how sure it is: 0 if nothing separates fields."""
    head = "".join(itertools.islice(io.StringIO(text[:HEAD_CHARS], newline=""), HEAD_LINES))
    scored = _scored(head, map(Dialect, DELIMITERS))
    if not scored or max(scored.values()) <= 2 * MIN_SCORE:
        separators = RARE_DELIMITERS.rstrip() if has_spaced_columns(head) else RARE_DELIMITERS
        rare = _scored(head, map(Dialect, filter(head.__contains__, separators)))
        scored |= {dialect: score for dialect, score in rare.items() if score >= SURE}
    if not scored:
        return Dialect(","), 0.0
    best = max(scored, key=scored.__getitem__)
    if best.delimiter == "," and _are_decimals(head):
        return Dialect(";"), SURE
    others = _scored(head, _variants(best, head))
    # Invariant: another way of quoting must divide the lines better, as most files have the usual one.
    best = max([best, *others], key=lambda dialect: others.get(dialect, scored.get(dialect, 0.0)))
    return best, max(scored.get(best, 0.0), others.get(best, 0.0))


def _are_decimals(head: str) -> bool:
    """Return whether lines are a name and numbers with decimal commas, which divide nothing."""
    name, *lines = filter(str.strip, head.splitlines())
    return "," not in name and len(lines) > 1 and all(map(_DECIMAL_COMMA.fullmatch, lines))


def _scored(head: str, dialects: Iterable[Dialect]) -> dict[Dialect, float]:
    """Return the scores of the dialects that divide lines."""
    return {dialect: score for dialect in dialects if (score := _score(head, dialect)) > 0}


def _variants(dialect: Dialect, head: str) -> Iterator[Dialect]:
    """Return other ways of quoting of which a text has signs."""
    delimiter = dialect.delimiter
    for quote in ('"', "'"):
        begins = f"{delimiter} {quote}" in head
        if begins or f"{delimiter}{quote}" in head or f"\n{quote}" in f"\n{head}":
            quoted = replace(dialect, quote=quote, is_padded=begins)
            yield quoted
            # Invariant: a backslash before a quote that ends a field is part of the field.
            if re.search(rf"\\{quote}[^{re.escape(delimiter)}\r\n{quote}]", head):
                yield replace(quoted, escape="\\")
    if '"' in head:
        yield replace(dialect, quote="")


def has_spaced_columns(text: str) -> bool:
    """Return whether spaces divide all lines but titles into equally many words, as in aligned tables."""
    lines = list(filter(None, map(str.split, text[:HEAD_CHARS].splitlines()[:200])))
    width = len(lines[-1]) if lines else 0
    titles = [index for index, words in enumerate(lines) if len(words) != width]
    if titles and width // 2 < len(lines[titles[-1]]) < width == len(lines[titles[-1] - 1]):
        return False  # A row below the header has no word in one of its columns.
    lines = lines[titles[-1] + 1 :] if titles else lines
    if len(lines) < (MIN_UNTITLED if titles else 2) or len(titles) > MAX_SPACED_TITLES or width < 2:
        return False
    words = list(itertools.chain.from_iterable(lines[1:]))
    return sum(map(is_value, words)) * 2 >= len(words)


def _score(head: str, dialect: Dialect) -> float:
    """Return how well a dialect divides lines: into equally many fields, which look like values."""
    rows = _filled_rows(head, dialect)
    width = usual_width(rows)
    if width < 2:
        return 0.0
    usual = [row for row in rows if row.width == width]
    divided = [row for row in usual if dialect.quote and _divides_quotes(row, dialect.delimiter)]
    if len(divided) > MAX_DIVIDED_SHARE * len(usual):
        return MIN_SCORE
    cells = list(itertools.chain.from_iterable(row.cells[:50] for row in usual[1:80]))
    if not dialect.quote and sum(map(_is_quoted, cells)) > MAX_DIVIDED_SHARE * len(cells):
        return MIN_SCORE
    others = {*DELIMITERS}.intersection("".join(cells)) - {dialect.delimiter, ","}
    # Invariant: what divides all lines, the header too, is not given up for what some cells hold.
    if others and (len(usual) < len(rows) or any(_divides_all(head, other) for other in others)):
        return 2 * MIN_SCORE
    typed = sum(map(is_value, cells)) / max(len(cells), 1)
    bonus = (dialect.delimiter != ",") / 10 - len(divided) / len(usual)
    if dialect.delimiter == " " and typed and '"' in head and _are_quoted(rows, width):
        return 1 + typed / 2 + QUOTES_BONUS
    return len(usual) / len(rows) + typed / 2 + bonus


def _are_quoted(rows: Sequence[Row], width: int) -> bool:
    """Return whether all rows are as long, and have spaces in quotes or, as R writes them, one field more than the first."""
    body = rows[1:]
    if len(body) < MIN_UNTITLED or any(row.width != width for row in body):
        return False
    is_shorter = rows[0].width == width - 1
    return is_shorter or (
        rows[0].width == width and all(any(" " in field for field in row.fields) for row in rows)
    )


def _is_quoted(cell: str) -> bool:
    return len(cell) > 1 and cell.startswith('"') and cell.endswith('"')


def _divides_quotes(row: Row, delimiter: str) -> bool:
    """Return whether fields begin or end within what is quoted, or what is quoted is a part of several rows."""
    return any(
        field.count('"') % 2 or (field[:1] == delimiter and "\n" in field) for field in row.fields[:50]
    )


def _filled_rows(head: str, dialect: Dialect) -> list[Row]:
    rows, _ = read_rows(head, dialect, max_rows=200)
    return list(itertools.filterfalse(attrgetter("is_blank"), rows))


def _divides_all(head: str, delimiter: str) -> bool:
    found = widths(_filled_rows(head, Dialect(delimiter)))
    return len(found) == 1 and 1 not in found


def widths(rows: Iterable[Row]) -> Counter[int]:
    """Return how many rows have how many fields."""
    return Counter(map(attrgetter("width"), rows))


def usual_width(rows: Iterable[Row]) -> int:
    """Return how many fields rows have: what most of them have, or else the most."""
    wide = widths(rows)
    del wide[0], wide[1]
    return max(wide, key=lambda width: (wide[width], width), default=1)


def is_value(cell: str) -> bool:
    """Return whether a cell is empty, a number or a date."""
    return not cell or number_format([cell]) is not None or date_format([cell], "") is not None
