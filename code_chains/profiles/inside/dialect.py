"""The layout of delimited text: its delimiter, and where its header, its rows and its footer are."""

from __future__ import annotations

import csv
import io
import itertools
import re
from collections import Counter
from dataclasses import dataclass, field

from .dates import date_format
from .numbers import number_format

DELIMITERS = ",;\t|"
MAX_CELLS, MAX_ROWS, MIN_ROWS = 100_000, 2_000, 12
"""How much of a table is looked at field by field."""
MIN_SCORE = 0.1
MAX_FIELD_CHARS = 1_000_000
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

    @property
    def is_blank(self) -> bool:
        """Whether it has no field with text."""
        return not any(field.strip() for field in self.fields)


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
            return [str(number) for number in range(self.width)]
        return self.header.fields

    def column(self, index: int) -> list[str]:
        """Return the fields of a column."""
        return [row.fields[index] for row in self.rows if index < len(row.fields)]


def read_rows(text: str, delimiter: str, *, max_rows: int = MAX_ROWS) -> tuple[list[Row], bool]:
    """Read the first rows, and whether these are all."""
    csv.field_size_limit(MAX_FIELD_CHARS)
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
    scores = {delimiter: _score(head, delimiter) for delimiter in DELIMITERS}
    best = max(scores, key=scores.__getitem__)
    return (best, scores[best]) if scores[best] > 0 else (",", 0.0)


def has_spaced_columns(text: str) -> bool:
    """Return whether spaces divide all lines into equally many words, as in aligned tables."""
    lines = [line.split() for line in text[:200_000].splitlines()[:200] if line.strip()]
    words = [word for line in lines[1:] for word in line]
    is_even = len(lines) > 1 and len(lines[0]) > 1 and len({len(line) for line in lines}) == 1
    return is_even and sum(map(_is_value, words)) * 2 >= len(words)


def _score(head: str, delimiter: str) -> float:
    """Return how well a delimiter divides lines: into equally many fields, which look like values."""
    rows = [row for row in read_rows(head, delimiter, max_rows=200)[0] if not row.is_blank]
    widths = Counter(len(row.fields) for row in rows)
    width = _usual_width(widths)
    if width < 2:
        return 0.0
    usual = [row for row in rows if len(row.fields) == width]
    if any(cell.count('"') % 2 for row in usual for cell in row.fields[:50]):  # It divides what is quoted.
        return MIN_SCORE
    cells = [cell.strip() for row in usual[1:80] for cell in row.fields[:50]]
    others = [
        other
        for other in DELIMITERS
        if other not in (delimiter, ",") and any(other in cell for cell in cells)
    ]
    # Invariant: what divides all lines, the header too, is not given up for what some cells hold.
    if others and (len(usual) < len(rows) or any(_divides_all(head, other) for other in others)):
        return 2 * MIN_SCORE
    typed = sum(_is_value(cell) for cell in cells) / max(len(cells), 1)
    return len(usual) / len(rows) + typed / 2 + (delimiter != ",") / 10


def _divides_all(head: str, delimiter: str) -> bool:
    rows = [row for row in read_rows(head, delimiter, max_rows=200)[0] if not row.is_blank]
    return len({len(row.fields) for row in rows}) == 1 and len(rows[0].fields) > 1


def _usual_width(widths: Counter[int]) -> int:
    """Return how many fields rows have: what most of them have, or else the most."""
    wide = {width: count for width, count in widths.items() if width > 1}
    return max(wide, key=lambda width: (wide[width], width), default=1)


def _is_value(cell: str) -> bool:
    return not cell or number_format([cell]) is not None or date_format([cell], "") is not None


def find_layout(text: str, delimiter: str, *, is_complete: bool) -> Layout:
    """Find the parts of a table."""
    rows, is_all = read_rows(text, delimiter)
    if not is_complete and rows:
        rows = rows[:-1]  # The last one may be cut off.
    is_all = is_all and is_complete
    filled = [row for row in rows if not row.is_blank]
    width = _usual_width(Counter(len(row.fields) for row in filled))
    start = _find_start(rows, width)
    body = rows[start:]
    layout = Layout(delimiter, None, [], width, is_complete=is_all)
    layout.other_tables = [rows[index].line + 1 for index in _table_starts(rows[:start])]
    layout.skipped_lines = body[0].line if body else 0
    if body and _is_header(body[0], body[1:200]):
        layout.header = body.pop(0)
        _check_widths(layout, filled)
    body = _without_units(layout, body)
    _split_body(layout, body, is_all=is_all)
    if is_complete and not is_all:
        _find_distant_footer(layout, text)
    return layout


def _find_start(rows: list[Row], width: int) -> int:
    """Return the index of the first row of the table, below titles and comments."""
    needed = max(1, min(width, 2), (width + 1) // 2 if width > 3 else 1)
    for index, row in enumerate(rows[:MAX_TITLE_ROWS]):
        count = sum(1 for cell in row.fields if cell.strip())
        is_wide = len(row.fields) == width or _is_short_header(rows[index : index + 2], width)
        if is_wide and count >= min(needed, width) and not _is_comment(row):
            return index
    return 0


def _is_short_header(rows: list[Row], width: int) -> bool:
    """Return whether the first of two rows has a field less than the second, which has values."""
    if len(rows) < 2 or width < 3 or len(rows[0].fields) != width - 1 or len(rows[1].fields) != width:
        return False
    return any(cell.strip() and _is_value(cell.strip()) for cell in rows[1].fields)


def _is_comment(row: Row) -> bool:
    return row.fields[0].startswith("#") and len(row.fields) == 1


def _check_widths(layout: Layout, filled: list[Row]) -> None:
    """Note whether rows have an empty field more than the header, which shifts columns for some readers."""
    assert layout.header is not None
    width = len(layout.header.fields)
    wider = [row for row in filled if len(row.fields) == width + 1]
    if width == layout.width - 1 and wider and not any(row.fields[-1].strip() for row in wider):
        layout.has_trailing_delimiter = True
        layout.width = width


def _is_header(first: Row, others: list[Row]) -> bool:
    """Return whether the first row holds names: other texts than those below, and no values."""
    cells = [cell.strip() for cell in first.fields]
    names = [cell for cell in cells if cell]
    values = [cell for cell in names if _is_value(cell)]
    are_years = len(values) < len(names) and all(map(_YEAR.fullmatch, values))
    if not names or (values and not are_years):
        return False
    if not others or any(len(cell) > 200 for cell in names[:3]):
        return True
    repeated = 0
    for index, cell in enumerate(cells[:50]):
        below = [row.fields[index].strip() for row in others if index < len(row.fields)]
        if any(map(_is_value, filter(None, below[:20]))):
            return True
        repeated += bool(cell) and cell in below
    return repeated == 0


def _without_units(layout: Layout, body: list[Row]) -> list[Row]:
    """Take away a row of units, such as `(kg)`, below the header of columns of numbers."""
    if layout.header is None or len(body) < 2:
        return body
    units = [cell.strip() for cell in body[0].fields]
    has_unit = False
    for index, unit in enumerate(units):
        below = [row.fields[index].strip() for row in body[1:30] if index < len(row.fields)]
        is_numeric = number_format({*filter(None, below)}) is not None
        if (
            len(unit) > MAX_UNIT_CHARS
            or not _UNIT_ROW.fullmatch(unit)
            or (unit and not is_numeric and not _is_bracketed(unit))
        ):
            return body
        has_unit = has_unit or bool(unit and unit != "-" and is_numeric)
    if not has_unit:
        return body
    layout.unit_lines = list(range(body[0].line, body[0].next_line))
    return body[1:]


def _is_bracketed(unit: str) -> bool:
    return unit[0] in "([" or unit == "-"


def _split_body(layout: Layout, body: list[Row], *, is_all: bool) -> None:
    """Divide what is below the header into rows and footer, to which other tables belong."""
    others = [index for index in _table_starts(body) if index > 1] if is_all else []
    layout.other_tables += [body[index].line + 1 for index in others]
    end = min(others, default=len(body))
    if is_all:
        below = body[end:]
        end = _find_end(layout, body[:end])
        layout.footer = _rows_for_readers([*body[end : len(body) - len(below)], *below])
    for row in body[:end]:
        if row.is_blank:
            layout.blank_lines += len(row.fields) > 1
        elif row.fields[0].startswith("#"):
            layout.has_comments = True
        else:
            layout.long_rows += len(row.fields) > layout.width + layout.has_trailing_delimiter
            layout.rows.append(row)


def _table_starts(rows: list[Row]) -> list[int]:
    """Return the indices of rows that are headers of tables: the first one, or behind an empty line; with values below."""
    return [
        index
        for index, row in enumerate(rows)
        if (not index or rows[index - 1].is_blank) and _is_header_of_values(row, rows[index + 1 : index + 20])
    ]


def _is_header_of_values(header: Row, below: list[Row]) -> bool:
    """Return whether a row is one of names, with as many fields in the rows below it, up to an empty line, and values."""
    rows = list(itertools.takewhile(lambda row: not row.is_blank, below))
    names = [cell.strip() for cell in header.fields]
    if len(names) < 2 or not all(names) or any(map(_is_value, names)):
        return False
    if not rows or any(len(row.fields) != len(names) for row in rows):
        return False
    return any(all(map(_is_value, filter(None, column))) and any(column) for column in _columns(rows))


def _columns(rows: list[Row]) -> list[list[str]]:
    return [[row.fields[index].strip() for row in rows] for index in range(len(rows[0].fields))]


def _rows_for_readers(rows: list[Row]) -> list[Row]:
    """Return rows without empty lines, which readers skip."""
    return [row for row in rows if not row.is_blank or len(row.fields) > 1]


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
        total = next((cell.strip() for cell in row.fields[:6] if _TOTAL.fullmatch(cell.strip())), "")
        if total:
            layout.total = total
        elif not row.is_blank and not _is_remark(
            row, layout.width, is_apart=index > 0 and body[index - 1].is_blank
        ):
            break
        end = index
    return end


def _is_remark(row: Row, width: int, *, is_apart: bool) -> bool:
    """Return whether a row has a text in its first field alone: in a table of several, or behind an empty line."""
    filled = [cell for cell in row.fields if cell.strip()]
    is_wide = width > 2 or (is_apart and width > 1 and not _is_value(row.fields[0].strip()))
    return is_wide and len(filled) == 1 and bool(row.fields[0].strip())
