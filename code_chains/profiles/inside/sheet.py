"""Where the tables of a sheet are, and which rows of one are its header, its units and its footer."""

from __future__ import annotations

import datetime
import itertools
import operator
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

from .dialect import Dialect, Row
from .layout import is_other_table, layout_of

Cells = Sequence[Any]
MAX_CELL_CHARS, MAX_TELLING_ROWS = 200, 20


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


def find_table(cells: Sequence[Cells], *, is_complete: bool) -> SheetTable | None:
    """Find the largest table of a sheet; None if it is empty."""
    areas = list[Area]()
    for left, right in _strips(cells):
        areas += _below_each_other(cells, left, right)
    if not areas:
        return None
    main = max(areas, key=lambda area: sum(map(_filled, area.of(cells))))
    others = [area for area in areas if area is not main]
    reach, main = main.right, _without_wide_remarks(cells, main)
    layout = layout_of(_rows(cells, main, reach), Dialect("\t"), is_complete=is_complete)
    first = main.top + layout.start
    header = range(first, first + layout.header_rows)
    skipped = [main.top + row.index for row in layout.skipped_rows]
    if len(header) > 1 and layout.rows and not any(layout.rows[0].cells[1:]):
        skipped.append(header.stop)  # The name of an index, below a header of several rows.
    end = main.top + layout.footer[0].index if layout.footer else main.bottom + 1
    return SheetTable(main, header, skipped, end, others)


def _filled(row: Iterable[Any]) -> int:
    return sum(value is not None for value in row)


def _runs(flags: Iterable[Any]) -> list[tuple[int, int]]:
    """Return the first and the last index of each row of true flags."""
    runs = list[tuple[int, int]]()
    for index, _ in filter(operator.itemgetter(1), enumerate(flags)):
        first = runs.pop()[0] if runs and runs[-1][1] == index - 1 else index
        runs.append((first, index))
    return runs


def _used_columns(rows: Iterable[Cells]) -> list[tuple[int, int]]:
    """Return the first and the last column of each group of columns with values."""
    return _runs(map(_filled, zip(*rows, strict=True)))


def _strips(cells: Sequence[Cells]) -> list[tuple[int, int]]:
    """Return the columns of tables that are side by side; an empty column divides them if each has labels of its own."""
    strips = list[tuple[int, int]]()
    for left, right in _used_columns(cells):
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
    """Return the tables of a strip; an empty row divides them if a header follows it, or a title and a header."""
    areas = list[Area]()
    for top, bottom in _runs(_filled(row[left : right + 1]) for row in cells):
        area = _used_area(cells, Area(top, bottom, left, right))
        if areas and not _begins_table(cells, areas[-1], area):
            last = areas.pop()
            area = Area(last.top, bottom, min(last.left, area.left), max(last.right, area.right))
        areas.append(area)
    return areas


def _begins_table(cells: Sequence[Cells], last: Area, area: Area) -> bool:
    """Return whether an area is a table of its own, by its first rows and the last rows of the area above."""
    lower_half = (last.top + last.bottom + 2) // 2  # It has no names.
    above = _rows(cells, replace(last, top=max(lower_half, last.bottom - MAX_TELLING_ROWS)))
    rows = _rows(cells, replace(area, bottom=min(area.bottom, area.top + MAX_TELLING_ROWS)))
    has_title = len(rows) > 1 and sum(map(bool, rows[0].cells)) == 1
    return is_other_table(above, rows) or (has_title and is_other_table(above, rows[1:]))


def _used_area(cells: Sequence[Cells], area: Area) -> Area:
    """Return an area without empty columns beside it."""
    used = _used_columns(area.of(cells))
    return Area(area.top, area.bottom, area.left + used[0][0], area.left + used[-1][1])


def _without_wide_remarks(cells: Sequence[Cells], area: Area) -> Area:
    """Return an area without the columns that only rows of texts above the table have."""
    texts = len(list(itertools.takewhile(are_texts, area.of(cells))))
    has_values = area.top + texts <= area.bottom
    names = area.top + max(texts - 1, 0) if has_values else area.top
    return replace(_used_area(cells, replace(area, top=names)), top=area.top)


def _rows(cells: Sequence[Cells], area: Area, reach: int = 0) -> list[Row]:
    """Return the rows of an area as texts; those with more beside it, up to a column, are longer."""
    rows = list[Row]()
    for index, row in enumerate(cells[area.top : area.bottom + 1]):
        is_longer = _filled(row[area.right + 1 : reach + 1]) > 0
        texts = map(cell_text, row[area.left : (reach if is_longer else area.right) + 1])
        rows.append(Row(list(texts), index, index, index + 1))
    return rows


def are_texts(row: Iterable[Any]) -> bool:
    """Return whether cells are texts or empty."""
    return all(value is None or isinstance(value, str) for value in row)


def cell_text(value: object) -> str:
    """Return a cell on one line."""
    if isinstance(value, datetime.datetime):
        return value.isoformat(sep=" ")
    return "" if value is None else " ".join(str(value)[:MAX_CELL_CHARS].split())


def row_text(row: Cells) -> str:
    """Return what is in a row."""
    return ", ".join(filter(None, map(cell_text, row)))
