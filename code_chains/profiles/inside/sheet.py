"""Where the tables of a sheet are, and which rows of one are its header, its units and its footer."""

from __future__ import annotations

import csv
import datetime
import io
import itertools
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from .dialect import Dialect
from .layout import find_layout

Cells = Sequence[Any]
MAX_TITLE_ROWS, MAX_TELLING_ROWS, MAX_CELL_CHARS = 12, 20, 200
YEARS = range(1900, 2101)


@dataclass
class Area:
    """A range of cells, counted from zero; its ends are inside."""

    top: int
    bottom: int
    left: int
    right: int

    def of(self, cells: Sequence[Cells]) -> list[Cells]:
        """Return its rows."""
        return [row[self.left : self.right + 1] for row in cells[self.top : self.bottom + 1]]

    @property
    def width(self) -> int:
        """How many columns it has."""
        return self.right - self.left + 1

    @property
    def columns(self) -> str:
        """Its columns, as a spreadsheet names them."""
        return f"{letters(self.left)}:{letters(self.right)}"

    @property
    def name(self) -> str:
        """Its name in a spreadsheet."""
        ends = f"{letters(self.left)}{self.top + 1}", f"{letters(self.right)}{self.bottom + 1}"
        return ":".join(dict.fromkeys(ends))


@dataclass
class SheetTable:
    """A table in a sheet; rows are counted from that of the sheet's top.

    Attributes:
        area: Where it is, with the rows around it that belong to none.
        header: The rows of names; empty if there are none.
        skipped: Rows below the header that are none of the table, such as units.
        end: The row behind its last one.
        others: Where other tables of the sheet are.
    """

    area: Area
    header: range
    skipped: list[int] = field(default_factory=list)
    end: int = 0
    others: list[Area] = field(default_factory=list)

    @cached_property
    def body(self) -> list[int]:
        """The rows of values."""
        return [row for row in range(self.header.stop, self.end) if row not in self.skipped]


def letters(column: int) -> str:
    """Return the name of a column."""
    before, last = divmod(column, 26)
    return (letters(before - 1) if before else "") + chr(ord("A") + last)


def find_table(cells: Sequence[Cells], merged: Sequence[Area], *, is_complete: bool) -> SheetTable | None:
    """Find the largest table of a sheet; None if it is empty."""
    areas = list(itertools.chain.from_iterable(_below_each_other(cells, *strip) for strip in _strips(cells)))
    if not areas:
        return None
    main = max(areas, key=lambda area: _filled(itertools.chain.from_iterable(area.of(cells))))
    others = [area for area in areas if area is not main]
    rows = main.of(cells)
    top, bottom = _find_header(rows, [area for area in merged if area.top >= main.top], main)
    has_names = _has_names(rows[bottom], rows[bottom + 1 :])
    names = list(map("name {}".format, map(letters, range(main.width)))) if has_names else rows[bottom]
    layout = find_layout(_text([names, *rows[bottom + 1 :]]), Dialect("\t"), is_complete=is_complete)
    first, end = main.top + bottom, len(rows) - len(layout.footer)
    used = _runs(map(bool, map(_filled, zip(*rows[top:end], strict=True))))
    main = Area(main.top, main.bottom, main.left + used[0][0], main.left + used[-1][1])
    header = range(main.top + top, first + 1) if has_names or layout.names else range(first, first)
    skipped = [first + row.index for row in layout.skipped_rows]
    if top < bottom and len(rows) > bottom + 1 and _filled(rows[bottom + 1]) == 1 and rows[bottom + 1][0]:
        skipped.append(first + 1)  # The name of an index, below a header of several rows.
    return SheetTable(main, header, skipped, main.top + end, others)


def _filled(row: Iterable[Any]) -> int:
    return sum(value is not None for value in row)


def _runs(flags: Iterable[bool]) -> list[tuple[int, int]]:
    """Return the first and the last index of each row of true flags."""
    groups = itertools.groupby(enumerate(flags), key=lambda item: item[1])
    runs = [[index for index, _ in items] for is_filled, items in groups if is_filled]
    return [(run[0], run[-1]) for run in runs]


def _strips(cells: Sequence[Cells]) -> list[tuple[int, int]]:
    """Return the columns of tables that are side by side; an empty column divides them if each has labels of its own."""
    strips = list[tuple[int, int]]()
    for left, right in _runs(map(bool, map(_filled, zip(*cells, strict=True)))):
        has_labels = right > left and any(isinstance(row[left], str) for row in cells[1:])
        is_level = bool(strips) and _top(cells, left, right) == _top(cells, *strips[-1])
        if is_level and not (has_labels and strips[-1][1] > strips[-1][0]):
            left = strips.pop()[0]
        strips.append((left, right))
    return strips


def _top(cells: Sequence[Cells], left: int, right: int) -> int:
    """Return the first row with a value in some columns."""
    return next(index for index, row in enumerate(cells) if _filled(row[left : right + 1]))


def _below_each_other(cells: Sequence[Cells], left: int, right: int) -> list[Area]:
    """Return the tables of a strip; an empty row divides them if a header follows it."""
    areas = list[Area]()
    for top, bottom in _runs(bool(_filled(row[left : right + 1])) for row in cells):
        rows = [row[left : right + 1] for row in cells[top : bottom + 1]]
        used = _runs(map(bool, map(_filled, zip(*rows, strict=True))))
        area = Area(top, bottom, left + used[0][0], left + used[-1][1])
        rows = area.of(cells)
        has_title = _filled(rows[0]) == 1 and _begins_table(rows[1:])
        if areas and not has_title and not _begins_table(rows):
            last = areas.pop()
            area = Area(last.top, bottom, min(last.left, area.left), max(last.right, area.right))
        areas.append(area)
    return areas


def _begins_table(rows: Sequence[Cells]) -> bool:
    """Return whether the first row has a name for each column of the others, but maybe the first, and for no other."""
    used = _used(rows[0]) if rows else []
    if len(used) < 2 or len(used) <= used[-1] - used[0]:
        return False
    left = min(used[0], max(used[0] - 1, min(map(min, filter(None, map(_used, rows[1:]))), default=0)))
    table = [row[left : used[-1] + 1] for row in rows]
    return sum(map(_filled, rows)) == sum(map(_filled, table)) and _has_names(table[0], table[1:])


def _used(row: Cells) -> list[int]:
    return [index for index, value in enumerate(row) if value is not None]


def _find_header(rows: Sequence[Cells], merged: Sequence[Area], area: Area) -> tuple[int, int]:
    """Return the first and the last row of names: below titles, of which some fill several cells."""
    start = next(filter(lambda index: _is_wide(rows[index]), range(min(len(rows), 60))), 0)
    for top in (start, start - 1):
        if 0 <= top < len(rows) - 2 and _is_group(rows[top : top + 2], area.top + top, merged, area):
            wide = {span.top - area.top for span in merged if area.left < span.left < span.right}
            above = itertools.takewhile(wide.__contains__, range(top - 1, -1, -1))
            return min(above, default=top), top + 1
    for index in range(start + 1, min(start + MAX_TITLE_ROWS, len(rows) - 1)):
        is_other = rows[index][0] is not None and _used(rows[index]) != _used(rows[start])
        is_other = is_other or not are_texts(rows[start])
        if is_other and _begins_table(rows[index:]):
            # A row of names with a gap is above a row of texts more often than a remark is above a header.
            has_gap = index == start + 1 and {*_used(rows[start])} < {*_used(rows[index])}
            return (start, start) if has_gap and are_texts(rows[start]) else (index, index)
        if not are_texts(rows[index]):
            break
    return start, start


def _is_wide(row: Cells) -> bool:
    """Return whether a row fills half of the columns, or all but the first."""
    return _filled(row) >= max(min(len(row), 2), (len(row) + 1) // 2) or (
        row[0] is None and None not in row[1:]
    )


def _is_group(rows: Sequence[Cells], row: int, merged: Sequence[Area], area: Area) -> bool:
    """Return whether the first of two rows names groups of columns, and the second the columns within them."""
    spans = [span for span in merged if span.top == row and area.left <= span.left < span.right]
    names = list(filter(None, rows[1]))
    is_title = rows[0][0] is not None and _filled(rows[0]) == 1
    if is_title or not are_texts(names) or None not in rows[0]:
        return False
    has_gap = any(None in rows[1][span.left - area.left : span.right - area.left + 1] for span in spans)
    return not has_gap if spans else len(set(names)) < len(names)


def are_texts(row: Iterable[Any]) -> bool:
    """Return whether cells are texts or empty."""
    return all(value is None or isinstance(value, str) for value in row)


def _has_names(row: Cells, below: Sequence[Cells]) -> bool:
    """Return whether a row holds names for certain, of which some may be numbers or dates."""
    below = below[:MAX_TELLING_ROWS]
    first, others = row[0], list(filter(lambda value: value is not None, row[1:]))
    if not below or not (first is None or isinstance(first, str)):
        return False
    if are_texts(row):
        return any(not are_texts(values) for values in below)
    if first is None:
        return len(others) == len(row) - 1 and any(values[0] is not None for values in below)
    return _are_labels(others) and not all(_are_labels(values[1:]) for values in below)


def _are_labels(values: Sequence[Any]) -> bool:
    """Return whether values are texts, years, dates or numbers in turn, as names of columns are."""
    others = [value for value in values if not isinstance(value, str)]
    if all(isinstance(value, datetime.date) for value in others):
        return True
    return all(value in YEARS for value in others) or others == [*range(len(others))]


def _text(rows: Iterable[Cells]) -> str:
    """Return rows as delimited text, each on a line."""
    text = io.StringIO()
    writer = csv.writer(text, delimiter="\t", lineterminator="\n")
    writer.writerows(map(cell_text, row) for row in rows)
    return text.getvalue()


def cell_text(value: object) -> str:
    """Return a cell on one line."""
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    return "" if value is None else " ".join(str(value)[:MAX_CELL_CHARS].split())


def row_text(row: Cells) -> str:
    """Return what is in a row."""
    return ", ".join(filter(None, map(cell_text, row)))
