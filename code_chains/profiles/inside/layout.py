"""The layout of delimited text: where its header, its rows and its footer are, and what is left out of the table."""

from __future__ import annotations

import csv
import itertools
import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass, field
from operator import attrgetter

from .dialect import Dialect, Row, is_value, read_rows, usual_width, widths
from .header import (
    are_values,
    cells_of,
    has_no_value,
    is_header,
    names_below,
    without_header,
    without_labels,
    without_units,
)

MAX_TITLE_ROWS, MANY_TITLE_ROWS = 60, 12
MAX_NOTE_ROWS = 10
MAX_FOOTER_ROWS = 12
TAIL_CHARS, TAIL_LINES = 20_000, 60
MAX_COUNTED_CHARS = 12 << 20
"""Characters whose records are counted, which takes about half a second."""
MAX_LISTED = 6
MAX_BROKEN_SHARE = 0.02
"""Up to this share of rows with more fields than the header are broken."""
_RULE = re.compile(r":?[-=]{3,}:?")
TOTAL = re.compile(
    r"(?![=@+])\W*(?:(?:(?:grand |sub)?totals?|(?:zwischen)?summen?|sum|totaux|totales?|totali|somme|totaal|razem)\b"
    r"|(?:end|anfangs)saldo|(?:opening|closing) balance|gesamt|insgesamt|итого|всего|合计|合計|总计).*",
    re.IGNORECASE,
)

REMARK = re.compile(
    r"(?:sources?|notes?|remarks?|quellen?|anmerkung(?:en)?|hinweise?|fuente|nota) ?: ", re.IGNORECASE
)


@dataclass
class Layout:
    """Where the parts of a table are.

    Attributes:
        dialect: What separates and quotes fields.
        names: The names of the columns; None if there is no header.
        rows: The rows that are looked at, without units and footer.
        width: Fields of a row.
        start: The number of the first record of the header, or of the rows.
        header: The records that hold the names.
        may_have_header: Whether the first row of a table without a header could be one.
        titles: Rows above the header.
        skipped: Rows among the others that are none, such as units, by the reason.
        footer: Rows below the table, such as totals.
        other_tables: Numbers of the lines, from one on, in which other tables of the file begin.
        total: The word that marks a row of totals; empty if there is none.
        is_complete: Whether all rows are in `rows`.
        widths: How many records of the file have how many fields.
        first_line: The physical line in which the table begins.
        is_counted: Whether all records have been counted.
        surplus: What rows have beyond the header: nothing, `empty` fields, `labels` before the others, `values`, or so many
            of these that they are `cut`.
        surplus_lines: The lines, from one on, of rows with values beyond the header.
        further_headers: The lines, from one on, of rows that begin as the header does, and have no values.
        blank_rows: How many records among the rows have delimiters and no text.
    """

    dialect: Dialect
    names: list[str] | None
    rows: list[Row]
    width: int
    start: int = 0
    header: list[list[str]] = field(default_factory=list)
    may_have_header: bool = False
    titles: list[Row] = field(default_factory=list)
    skipped: dict[str, list[Row]] = field(default_factory=dict)
    footer: list[Row] = field(default_factory=list)
    other_tables: list[int] = field(default_factory=list)
    total: str = ""
    is_complete: bool = True
    widths: Counter[int] = field(default_factory=Counter)
    first_line: int = 0
    is_counted: bool = False
    surplus: str = ""
    surplus_lines: list[int] = field(default_factory=list)
    further_headers: list[int] = field(default_factory=list)
    blank_rows: int = 0

    @property
    def header_rows(self) -> int:
        """How many records hold the names."""
        return len(self.header)

    @property
    def full_width(self) -> int:
        """How many fields the longest row has."""
        return max(self.widths, default=self.width)

    def count_rows(self) -> int:
        """Return how many rows the table has: records with text, without what is known to be none."""
        return (
            self.widths.total() - self.widths[0] - self.blank_rows - len(self.skipped_rows) - len(self.footer)
        )

    @property
    def skipped_rows(self) -> list[Row]:
        """The rows among the others that are none, in their order."""
        return sorted(itertools.chain.from_iterable(self.skipped.values()), key=attrgetter("index"))

    @property
    def remarks(self) -> list[Row]:
        """The rows below the table that are not blank."""
        return [row for row in self.footer if not row.is_blank]

    def column(self, index: int) -> list[str]:
        """Return the fields of a column."""
        return [row.fields[index] for row in self.rows if index < row.width]


def find_layout(text: str, dialect: Dialect, *, is_complete: bool) -> Layout:
    """Find the parts of a table, and count its rows."""
    rows, is_all = read_rows(text, dialect)
    if not is_complete and rows:
        rows = rows[:-1]  # The last one may be cut off.
    layout = layout_of(rows, dialect, is_complete=is_all and is_complete)
    _count(layout, text)
    if is_complete and not is_all:
        _find_distant_footer(layout, text)
    return layout


def layout_of(rows: list[Row], dialect: Dialect, *, is_complete: bool) -> Layout:
    """Find the parts of a table among rows, which are all if it is complete."""
    width = usual_width(itertools.filterfalse(attrgetter("is_blank"), rows))
    start = _find_start(rows, width)
    body = rows[start:]
    first_line = body[0].line if body else 0
    layout = Layout(dialect, None, [], width, start, is_complete=is_complete, first_line=first_line)
    layout.titles = list(itertools.filterfalse(attrgetter("is_blank"), rows[:start]))
    _note_tables(layout, rows[:start])
    body = without_header(layout, body)
    body = without_labels(layout, body) if layout.names is not None else body
    body = without_units(layout, body)
    _split_body(layout, body)
    return layout


def _find_start(rows: list[Row], width: int) -> int:
    """Return the index of the first row of the table, below titles and comments."""
    needed = max(min(width, 2), (width + 1) // 2)
    for index, row in enumerate(rows[:MAX_TITLE_ROWS]):
        is_wide = row.width == width or _is_uneven_header(rows[index : index + 2], width)
        is_filled = sum(map(bool, row.cells)) >= min(needed, row.width) or (
            width == 2 and row.cells[-1] != ""
        )
        if is_wide and is_filled and not (row.is_comment or _is_above(row, rows[index + 1 :])):
            start = _below_notes(rows, index) or _with_groups(rows, index, width)
            return start if start <= MANY_TITLE_ROWS or 2 * start <= len(rows) else _first_wide(rows)
    return 0


def _is_above(row: Row, below: list[Row]) -> bool:
    """Return whether a row is above a table: a setting before an empty line, or names in a comment above values."""
    if row.cells[0].endswith(":") and row.width == 2:
        return any(each.is_blank for each in below[:MAX_NOTE_ROWS])
    return row.fields[0].startswith("# ") and len(below) > 0 and not is_header(below[0], below[1:200])


def _first_wide(rows: list[Row]) -> int:
    """Return the index of the first row with several texts: what most rows are above is not the table."""
    return next((row.index for row in rows if sum(map(bool, row.cells)) > 1), 0)


def _below_notes(rows: list[Row], index: int) -> int:
    """Return the index of a full row of names below rows of texts with gaps; 0 if there is none."""
    texts = list(itertools.takewhile(has_no_value, rows[index : index + MAX_NOTE_ROWS]))
    names = texts[-1].cells if len(texts) > 2 else [""]
    if all(names) and len(set(names)) == len(names) and not any(all(row.cells) for row in texts[:-1]):
        return texts[-1].index
    return 0


def _with_groups(rows: list[Row], index: int, width: int) -> int:
    """Return the index of the first row above that groups the names of the next, such as `2023,,2024,`."""
    while index and rows[index - 1].width == width and sum(map(bool, rows[index - 1].cells)) > 1:
        if not names_below(rows[index - 1], rows[index], rows[index + 1 :]):
            break
        index -= 1
    return index


def _is_uneven_header(rows: list[Row], width: int) -> bool:
    """Return whether the first of two rows has other fields than the second, and names, as the second has values."""
    if len(rows) < 2 or rows[0].width < 2 or rows[1].width < width or not has_no_value(rows[0]):
        return False
    return any(map(is_value, filter(None, rows[1].cells)))


def _split_body(layout: Layout, body: list[Row]) -> None:
    """Divide what is below the header into rows and footer, to which other tables belong."""
    end = len(body)
    if layout.is_complete:
        end = _find_end(layout, body[: _note_tables(layout, body, first=2)])
        layout.footer = _rows_for_readers(body[end:])
    for row in body[:end]:
        if row.is_blank:
            layout.blank_rows += row.width > 1
        elif row.fields in layout.header:
            if layout.rows and row.width > 1 and not any(layout.rows[-1].cells[1:]):
                layout.skipped.setdefault("above the header", []).append(layout.rows.pop())
            layout.skipped.setdefault("the header once more", []).append(row)
        elif all(map(_RULE.fullmatch, row.cells)):
            layout.skipped.setdefault("a line of dashes", []).append(row)
        elif layout.width > 1 and (row.is_comment or row.fields[0].startswith("# ")):
            layout.skipped.setdefault("comments", []).append(row)
        else:
            layout.rows.append(row)
            if (
                layout.header
                and row.cells[0]
                and row.cells[0] == layout.header[0][0].strip()
                and has_no_value(row)
            ):
                layout.further_headers.append(row.line + 1)


def _note_tables(layout: Layout, rows: list[Row], *, first: int = 0) -> int:
    """Note the tables that begin among rows: at the first one, or behind an empty line. Return where the first begins."""
    end = len(rows)
    for index in range(first, len(rows)):
        is_apart = (not index or rows[index - 1].is_blank) and rows[index].fields not in layout.header
        if is_apart and is_other_table(rows[first and first - 1 : index], rows[index : index + 20]):
            layout.other_tables.append(rows[index].line + 1)
            end = min(end, index)
    return end


def is_other_table(above: list[Row], rows: list[Row]) -> bool:
    """Return whether rows begin a table: names, with values below them that are not like those of the table above."""
    header, below = rows[0], list(itertools.takewhile(lambda row: not row.is_blank, rows[1:]))
    # The first name may be missing, as that of an index is.
    names = header.cells[header.width > 2 and not header.cells[0] :]
    if (
        header.width < 2
        or header.cells[0].endswith(":")
        or any(map(is_value, names))
        or set(widths(below)) != {header.width}
    ):
        return False
    columns = enumerate(zip(*(row.cells for row in below), strict=True))
    typed = [index for index, column in columns if are_values(column)]
    alike = [row for row in above[-MAX_TITLE_ROWS:] if row.width == header.width and not row.is_blank]
    # Invariant: a row of a table has values where its other rows have them, and no names.
    return len(typed) > 0 and (not alike or any(are_values(cells_of(alike[-20:], index)) for index in typed))


def _rows_for_readers(rows: list[Row]) -> list[Row]:
    """Return rows without empty lines, which readers skip."""
    return [row for row in rows if not row.is_blank or row.width > 1]


def _find_distant_footer(layout: Layout, text: str) -> None:
    """Find the footer of a table of which only the first rows were looked at."""
    lines = text[-TAIL_CHARS:].splitlines(keepends=True)[1:]
    rows = read_rows("".join(lines[-TAIL_LINES:]), layout.dialect)[0]
    layout.footer = _rows_for_readers(rows[_find_end(layout, rows) :])
    first = text.count("\n") + (not text.endswith("\n")) - min(len(lines), TAIL_LINES)
    for row in layout.footer:
        row.line += first


def _find_end(layout: Layout, body: list[Row]) -> int:
    """Return the index behind the last row, before totals and remarks."""
    end = len(body)
    for index in range(len(body) - 1, max(len(body) - 1 - MAX_FOOTER_ROWS, 0), -1):
        row = body[index]
        if total := next(filter(TOTAL.fullmatch, row.cells[:6]), ""):
            layout.total = total
        elif not (row.is_blank or _is_remark(row, layout.width, body[:index])):
            break
        end = index
    return end


def _is_cut_text(row: Row, above: list[Row], width: int) -> bool:
    """Return whether a row has fewer fields than a table, and texts alone, which no full row of the table has."""
    if not 0 < row.width < width or not has_no_value(row):
        return False
    full = [each for each in above if each.width == width]
    return len(full) > 0 and not any(map(has_no_value, full))


def _is_remark(row: Row, width: int, above: list[Row]) -> bool:
    """Return whether a row is a text below a table: in its first field alone, or with fewer fields than all others."""
    if _is_cut_text(row, above, width):
        return True
    first, *others = row.cells
    if REMARK.match(first):
        return True
    is_apart = above[-1].is_blank
    is_wide = width > 2 or (is_apart and width > 1 and not is_value(first))
    return is_wide and first != "" and not any(others)


def _count(layout: Layout, text: str) -> None:
    """Count the fields of all records, and find out what rows have beyond the header."""
    width = len(layout.names) if layout.names is not None else layout.width
    first, is_cut = layout.start + layout.header_rows, len(text) > MAX_COUNTED_CHARS
    text = text[:MAX_COUNTED_CHARS]
    try:
        layout.widths = _count_widths(text, layout.dialect, first)
    except csv.Error:
        return
    # Invariant: blank rows below those that are looked at are not known, so that counts would be too high.
    layout.is_counted = (layout.is_complete or not layout.blank_rows) and not is_cut
    if layout.full_width > width and layout.names is not None:
        _find_surplus(layout, text, first)


def _count_widths(text: str, dialect: Dialect, first: int) -> Counter[int]:
    """Return how many records, from one on, have how many fields."""
    is_plain = dialect.delimiter.isascii() and not dialect.escape
    if dialect.quote in text or "\r" in text or not is_plain:
        return Counter(map(len, itertools.islice(dialect.records(text), first, None)))
    text = text.removesuffix("\n")
    others = bytes({*range(256)} - {*f"{dialect.delimiter}\n".encode()})
    kept = text.encode(errors="replace").translate(None, others) + b"\n"
    rest = b"".join(kept.split(b"\n", first)[first:])
    line = rest[: rest.find(b"\n") + 1]
    is_uniform = rest == line * rest.count(b"\n")  # Most are, and comparing takes the least time.
    delimiters = Counter({line[:-1]: rest.count(b"\n")} if is_uniform else rest.split(b"\n")[:-1])
    blank = text.split("\n")[first:].count("") if delimiters[b""] else 0
    found = Counter({len(each) + 1: lines for each, lines in delimiters.items()})
    return found - Counter({1: blank}) + Counter({0: blank})


def _find_surplus(layout: Layout, text: str, first: int) -> None:
    """Find out what fields beyond the header are: labels before the others, values, or nothing."""
    width, reader = len(layout.names or ()), layout.dialect.records(text)
    longer, labels = 0, []
    for index, fields in enumerate(reader):
        if index < first or len(fields) <= width:
            continue
        longer += 1
        labels.append(fields[0])
        if any(map(str.strip, fields[width:])):
            layout.surplus_lines.append(reader.line_num)  # type: ignore[attr-defined]
    if not layout.surplus_lines:
        layout.surplus, layout.width = "empty", width
        return
    rows = sum(count for size, count in layout.widths.items() if size > 1)
    is_label = longer == rows and layout.full_width == width + 1 and _are_labels(labels, layout, text)
    # Invariant: a few broken rows make no columns of their own for all others.
    is_cut = len(layout.surplus_lines) <= MAX_BROKEN_SHARE * rows
    layout.surplus = "labels" if is_label else "cut" if is_cut else "values"


def _are_labels(texts: list[str], layout: Layout, text: str) -> bool:
    """Return whether texts are names of rows, as R writes them: numbers from one on, or words in quotes as the header."""
    if texts == list(map(str, range(1, len(texts) + 1))):
        return True
    lines = text[: 1 << 20].split("\n", layout.start + 3)[layout.start : layout.start + 2]
    are_quoted = layout.dialect.quote != "" and all(line.startswith(layout.dialect.quote) for line in lines)
    return are_quoted and all(texts) and len(set(texts)) == len(texts)


def listed(lines: Iterable[int]) -> str:
    """Return numbers of lines in words."""
    numbers = list(lines)
    shown = ", ".join(map(str, numbers[:MAX_LISTED]))
    if len(numbers) > 2 and numbers == list(range(numbers[0], numbers[-1] + 1)):
        return f"lines {numbers[0]} to {numbers[-1]}"
    return f"line{'s' * (len(numbers) > 1)} {shown}{', …' if len(numbers) > MAX_LISTED else ''}"
