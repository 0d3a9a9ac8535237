"""The layout of delimited text: its delimiter, and where its header, its rows and its footer are."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from functools import cached_property
from operator import attrgetter

from .dates import date_format
from .numbers import number_format

DELIMITERS = ",;\t|"
MAX_CELLS, MAX_ROWS, MIN_ROWS = 100_000, 2_000, 12
"""How much of a table is looked at field by field."""
MIN_SCORE = 0.1
MAX_TITLE_ROWS = 60
MAX_FOOTER_ROWS = 12
TAIL_CHARS, TAIL_LINES = 20_000, 60
MAX_UNIT_CHARS = 14
_YEAR = re.compile(r"(?:19|20)\d{2}")
_UNIT_ROW = re.compile(r"[\[(].{0,12}[\])]|[€$£%°].{0,4}|[A-Za-zµ°²³/%€$]{1,6}|-?")
_TOTAL = re.compile(
    r"\W*(?:grand |sub)?totals?\b.*|\W*(?:zwischen)?summen?\b.*|\W*gesamt.*|\W*insgesamt.*|\W*sum\b.*|\W*totaux\b.*"
    r"|\W*totales?\b.*|\W*totali\b.*|\W*somme\b.*|\W*totaal\b.*|\W*razem\b.*|\W*итого.*|\W*всего.*|\W*合计.*|\W*合計.*|\W*总计.*",
    re.IGNORECASE,
)


@dataclass
class Row:
    """One record: its fields, and the physical lines that it takes, counted from zero."""

    fields: list[str]
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
        """Whether it is a line that begins with `#`."""
        return self.width == 1 and self.fields[0].startswith("#")


@dataclass
class Layout:
    """Where the parts of a table are.

    Attributes:
        delimiter: What separates fields.
        header: The row of names; None if there is none.
        rows: The rows that are looked at, without units and footer.
        width: Fields of a row.
        skipped_lines: Physical lines before the header that hold no rows.
        unit_lines: Physical lines of a row of units below the header.
        footer: Rows below the table, such as totals.
        other_tables: Numbers of the lines, from one on, in which other tables of the file begin.
        total: The word that marks a row of totals; empty if there is none.
        is_complete: Whether all rows are in `rows`.
        has_trailing_delimiter: Whether rows have one field more than the header, an empty one.
        long_rows: How many rows have more fields than the others.
        blank_lines: How many lines between the rows are empty of text but have delimiters.
        has_comments: Whether there are lines among the rows that begin with `#`.
    """

    delimiter: str
    header: Row | None
    rows: list[Row]
    width: int
    skipped_lines: int = 0
    unit_lines: list[int] = field(default_factory=list)
    footer: list[Row] = field(default_factory=list)
    other_tables: list[int] = field(default_factory=list)
    total: str = ""
    is_complete: bool = True
    has_trailing_delimiter: bool = False
    long_rows: int = 0
    blank_lines: int = 0
    has_comments: bool = False

    @property
    def names(self) -> list[str]:
        """The names of the columns; numbers if there is no header."""
        if self.header is None:
            return list(map(str, range(self.width)))
        return self.header.fields

    def column(self, index: int) -> list[str]:
        """Return the fields of a column."""
        return [row.fields[index] for row in self.rows if index < row.width]


def read_rows(text: str, delimiter: str, *, max_rows: int = MAX_ROWS) -> tuple[list[Row], bool]:
    """Read the first rows, and whether these are all."""
    reader = csv.reader(io.StringIO(text, newline=""), delimiter=delimiter)
    rows, line, cells = list[Row](), 0, 0
    try:
        for fields in reader:
            rows.append(Row(fields, line, reader.line_num))
            line = reader.line_num
            cells += len(fields)
            if len(rows) >= max_rows or (cells > MAX_CELLS and len(rows) >= MIN_ROWS):
                return rows, next(reader, None) is None
    except csv.Error:
        return rows, False
    return rows, True


def find_delimiter(text: str) -> tuple[str, float]:
    """Return the delimiter, and how sure it is: 0 if nothing separates fields."""
    head = "".join(itertools.islice(io.StringIO(text[:200_000], newline=""), 300))
    scores = [_score(head, delimiter) for delimiter in DELIMITERS]
    best = max(scores)
    return (DELIMITERS[scores.index(best)], best) if best > 0 else (",", 0.0)


def has_spaced_columns(text: str) -> bool:
    """Return whether spaces divide all lines into equally many words, as in aligned tables."""
    lines = list(filter(None, map(str.split, text[:200_000].splitlines()[:200])))
    widths = set(map(len, lines))
    if len(lines) < 2 or len(widths) > 1 or widths == {1}:
        return False
    words = list(itertools.chain.from_iterable(lines[1:]))
    return sum(map(_is_value, words)) * 2 >= len(words)


def _score(head: str, delimiter: str) -> float:
    """Return how well a delimiter divides lines: into equally many fields, which look like values."""
    rows = _filled_rows(head, delimiter)
    width = _usual_width(rows)
    if width < 2:
        return 0.0
    usual = [row for row in rows if row.width == width]
    if any(map(_divides_quotes, usual)):
        return MIN_SCORE
    cells = list(itertools.chain.from_iterable(row.cells[:50] for row in usual[1:80]))
    others = {*DELIMITERS}.intersection("".join(cells)) - {delimiter, ","}
    # Invariant: what divides all lines, the header too, is not given up for what some cells hold.
    if others and (len(usual) < len(rows) or any(_divides_all(head, other) for other in others)):
        return 2 * MIN_SCORE
    typed = sum(map(_is_value, cells)) / max(len(cells), 1)
    return len(usual) / len(rows) + typed / 2 + (delimiter != ",") / 10


def _divides_quotes(row: Row) -> bool:
    """Return whether fields begin or end within what is quoted."""
    return any(field.count('"') % 2 for field in row.fields[:50])


def _filled_rows(head: str, delimiter: str) -> list[Row]:
    rows, _ = read_rows(head, delimiter, max_rows=200)
    return list(itertools.filterfalse(attrgetter("is_blank"), rows))


def _divides_all(head: str, delimiter: str) -> bool:
    widths = _widths(_filled_rows(head, delimiter))
    return len(widths) == 1 and 1 not in widths


def _widths(rows: Iterable[Row]) -> Counter[int]:
    return Counter(map(attrgetter("width"), rows))


def _usual_width(rows: Iterable[Row]) -> int:
    """Return how many fields rows have: what most of them have, or else the most."""
    wide = _widths(rows)
    del wide[0], wide[1]
    return max(wide, key=lambda width: (wide[width], width), default=1)


def _is_value(cell: str) -> bool:
    """Return whether a cell is empty, a number or a date."""
    return not cell or number_format([cell]) is not None or date_format([cell], "") is not None


def find_layout(text: str, delimiter: str, *, is_complete: bool) -> Layout:
    """Find the parts of a table."""
    rows, is_all = read_rows(text, delimiter)
    if not is_complete and rows:
        rows = rows[:-1]  # The last one may be cut off.
    is_all = is_all and is_complete
    filled = list(itertools.filterfalse(attrgetter("is_blank"), rows))
    width = _usual_width(filled)
    start = _find_start(rows, width)
    body = rows[start:]
    layout = Layout(delimiter, None, [], width, is_complete=is_all)
    _note_tables(layout, rows[:start])
    layout.skipped_lines = body[0].line if body else 0
    if body and _is_header(body[0], body[1:200]):
        layout.header = body.pop(0)
        _check_widths(layout, layout.header.width, filled)
    body = _without_units(layout, body)
    _split_body(layout, body, is_all=is_all)
    if is_complete and not is_all:
        _find_distant_footer(layout, text)
    return layout


def _find_start(rows: list[Row], width: int) -> int:
    """Return the index of the first row of the table, below titles and comments."""
    needed = max(min(width, 2), (width + 1) // 2)
    for index, row in enumerate(rows[:MAX_TITLE_ROWS]):
        is_wide = row.width == width or _is_short_header(rows[index : index + 2], width)
        if is_wide and sum(map(bool, row.cells)) >= needed and not row.is_comment:
            return index
    return 0


def _is_short_header(rows: list[Row], width: int) -> bool:
    """Return whether the first of two rows has a field less than the second, which has values."""
    if len(rows) < 2 or width < 3 or rows[0].width != width - 1 or rows[1].width != width:
        return False
    return any(map(_is_value, filter(None, rows[1].cells)))


def _check_widths(layout: Layout, width: int, filled: list[Row]) -> None:
    """Note whether rows have an empty field more than the header, which shifts columns for some readers."""
    last = [row.cells[-1] for row in filled if row.width == width + 1]
    if width == layout.width - 1 and last and not any(last):
        layout.has_trailing_delimiter = True
        layout.width = width


def _is_header(first: Row, others: list[Row]) -> bool:
    """Return whether the first row holds names: other texts than those below, and no values."""
    names = list(filter(None, first.cells))
    values = list(filter(_is_value, names))
    are_years = len(values) < len(names) and all(map(_YEAR.fullmatch, values))
    if not names or (values and not are_years):
        return False
    if not others or max(map(len, names[:3])) > 200:
        return True
    repeated = 0
    for index, cell in enumerate(first.cells[:50]):
        below = _cells_of(others, index)
        if any(map(_is_value, filter(None, below[:20]))):
            return True
        repeated += bool(cell) and cell in below
    return repeated == 0


def _cells_of(rows: list[Row], index: int) -> list[str]:
    """Return the cells of a column."""
    return [row.cells[index] for row in rows if index < row.width]


def _without_units(layout: Layout, body: list[Row]) -> list[Row]:
    """Take away a row of units, such as `(kg)`, below the header of columns of numbers."""
    if layout.header is None or len(body) < 2:
        return body
    has_unit = False
    for index, unit in enumerate(body[0].cells):
        is_numeric = number_format({*filter(None, _cells_of(body[1:30], index))}) is not None
        if not _is_unit(unit, is_numeric=is_numeric):
            return body
        has_unit = has_unit or (is_numeric and unit not in ("", "-"))
    if not has_unit:
        return body
    layout.unit_lines = list(range(body[0].line, body[0].next_line))
    return body[1:]


def _is_unit(cell: str, *, is_numeric: bool) -> bool:
    """Return whether a cell may be in a row of units: above numbers any unit, else one in brackets or none."""
    if len(cell) > MAX_UNIT_CHARS or not _UNIT_ROW.fullmatch(cell):
        return False
    return is_numeric or cell in ("", "-") or cell[0] in "(["


def _split_body(layout: Layout, body: list[Row], *, is_all: bool) -> None:
    """Divide what is below the header into rows and footer, to which other tables belong."""
    end = len(body)
    if is_all:
        end = _find_end(layout, body[: _note_tables(layout, body, first=2)])
        layout.footer = _rows_for_readers(body[end:])
    for row in body[:end]:
        if row.is_blank:
            layout.blank_lines += row.width > 1
        elif row.fields[0].startswith("#"):
            layout.has_comments = True
        else:
            layout.long_rows += row.width > layout.width + layout.has_trailing_delimiter
            layout.rows.append(row)


def _note_tables(layout: Layout, rows: list[Row], *, first: int = 0) -> int:
    """Note the tables that begin among rows: at the first one, or behind an empty line. Return where the first begins."""
    end = len(rows)
    for index in range(first, len(rows)):
        if (not index or rows[index - 1].is_blank) and _is_header_of_values(*rows[index : index + 20]):
            layout.other_tables.append(rows[index].line + 1)
            end = min(end, index)
    return end


def _is_header_of_values(header: Row, *below: Row) -> bool:
    """Return whether a row is one of names, with as many fields in the rows below it, up to an empty line, and values."""
    rows = list(itertools.takewhile(lambda row: not row.is_blank, below))
    if header.width < 2 or any(map(_is_value, header.cells)) or set(_widths(rows)) != {header.width}:
        return False
    columns = zip(*(row.cells for row in rows), strict=True)
    return any(any(column) and all(map(_is_value, column)) for column in columns)


def _rows_for_readers(rows: list[Row]) -> list[Row]:
    """Return rows without empty lines, which readers skip."""
    return [row for row in rows if not row.is_blank or row.width > 1]


def _find_distant_footer(layout: Layout, text: str) -> None:
    """Find the footer of a table of which only the first rows were looked at."""
    lines = text[-TAIL_CHARS:].splitlines(keepends=True)[1:]
    rows = read_rows("".join(lines[-TAIL_LINES:]), layout.delimiter)[0]
    layout.footer = _rows_for_readers(rows[_find_end(layout, rows) :])


def _find_end(layout: Layout, body: list[Row]) -> int:
    """Return the index behind the last row, before totals and remarks."""
    end = len(body)
    for index in range(len(body) - 1, max(len(body) - 1 - MAX_FOOTER_ROWS, 0), -1):
        row = body[index]
        if total := next(filter(_TOTAL.fullmatch, row.cells[:6]), ""):
            layout.total = total
        elif not row.is_blank and not _is_remark(row, layout.width, is_apart=body[index - 1].is_blank):
            break
        end = index
    return end


def _is_remark(row: Row, width: int, *, is_apart: bool) -> bool:
    """Return whether a row has a text in its first field alone: in a table of several, or behind an empty line."""
    first, *others = row.cells
    is_wide = width > 2 or (is_apart and width > 1 and not _is_value(first))
    return is_wide and first != "" and not any(others)
