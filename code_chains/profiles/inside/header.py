"""The header of delimited text: rows of names, and rows of questions, groups and units that belong to it."""

from __future__ import annotations

import itertools
import re
from collections.abc import Sequence
from typing import TYPE_CHECKING

from .dates import date_format
from .dialect import COMMENT_MARKS, Row, is_value
from .numbers import number_format

if TYPE_CHECKING:
    from .layout import Layout

MAX_HEADER_ROWS, MIN_LABELLED = 3, 3
MAX_NAMES_CHARS = 900
"""Longer names are not written into the line that reads a table."""
MAX_UNIT_CHARS = 14
_SENTENCE = re.compile(r"\S\s+\S|[{?]")
_QUESTION = re.compile(r"\S\s+\S+\s+\S|\S\s+\S+\?$")
_YEAR = re.compile(r"(?:19|20)\d{2}")
_UNIT_ROW = re.compile(r"[\[(].{0,12}[\])]|[€$£%°].{0,4}|[A-Za-zµ°²³/%€$]{1,6}|-?")


def without_header(layout: Layout, body: list[Row]) -> list[Row]:
    """Take away the rows of names."""
    if not body or not is_header(body[0], body[1:200]):
        layout.names = _names_in_comment(layout)
        layout.titles = layout.titles[: -1 if layout.names else None]
        layout.may_have_header = len(body) > 0 and has_no_value(body[0])
        return body
    first, names, count = body[0], [*body[0].fields], 1
    while count < min(len(body), MAX_HEADER_ROWS):
        below = count + (body[count].is_blank and count + 1 < len(body))
        if not names_below(first, body[below], body[below + 1 :]):
            break
        names, count = _joined(names, body[below]), below + 1
        if all(body[below].cells):
            break
    if count > 1 and are_long(names):
        return _with_one_row_of_names(layout, body, count)
    layout.names, layout.header = names, [row.fields for row in body[:count]]
    return body[count:]


def _names_in_comment(layout: Layout) -> list[str] | None:
    """Return the names in a comment directly above rows; None if there are none, or others than columns."""
    comment = layout.titles[-1] if layout.titles else None
    if comment is None or comment.index != layout.start - 1 or comment.fields[0][:1] not in COMMENT_MARKS:
        return None
    text = layout.dialect.delimiter.join(comment.fields).lstrip(COMMENT_MARKS).strip()
    names = [*next(layout.dialect.records(text), [])]
    names = names if len(names) > 1 else text.split()
    is_header = len(names) == layout.width and not any(map(is_value, names))
    return names if is_header else None


def without_labels(layout: Layout, body: list[Row]) -> list[Row]:
    """Take away rows of further names below the header, such as the questions of a survey: texts above columns of values."""
    least = MIN_LABELLED
    while len(body) > least and _are_labels_of(body[0], body[1:50]):
        layout.skipped.setdefault("more names", []).append(body[0])
        body, least = body[1:], 2
    return body


def _are_labels_of(row: Row, below: list[Row]) -> bool:
    are_apart = len(set(row.cells)) == row.width and not any(map(is_value, row.cells))
    if not are_apart or 3 * sum(map(bool, map(_SENTENCE.search, row.cells))) < row.width:
        return False
    is_text = row.width > 1 and all(map(_QUESTION.search, row.cells))
    if is_text and not any(_QUESTION.search(cell) for other in below for cell in other.cells):
        return True
    typed = [index for index in range(min(row.width, 50)) if are_values(cells_of(below[1:], index))]
    return len(typed) > 1


def are_long(names: Sequence[str]) -> bool:
    """Return whether names are too long to be written into a line."""
    return sum(map(len, names)) + 4 * len(names) > MAX_NAMES_CHARS


def _with_one_row_of_names(layout: Layout, body: list[Row], count: int) -> list[Row]:
    """Take the names of the row that has most of them; the others are left out."""
    best = max(body[:count], key=lambda row: sum(map(bool, row.cells)))
    layout.names, layout.header = best.fields, [best.fields]
    layout.start, layout.first_line = best.index, best.line
    position = body.index(best)
    layout.titles += body[:position]
    if position + 1 < count:
        layout.skipped["more names"] = body[position + 1 : count]
    return body[count:]


def names_below(first: Row, second: Row, others: Sequence[Row]) -> bool:
    """Return whether a second row completes the names of the first: where that has gaps, or is about groups."""
    if second.width > first.width or second.is_blank or not others:
        return False
    names = list(filter(None, second.cells))
    gaps = [index for index, name in enumerate(second.cells) if name and not first.cells[index]]
    begins_apart = not (first.cells[0] and second.cells[0])
    are_groups = not any(name and beside for name, beside in itertools.pairwise([*first.cells, "-"]))
    completes = any(gaps) and (gaps[0] > 0 or all(second.cells))
    completes = completes and (begins_apart or are_groups or len(set(names)) < len(names))
    repeats = len(names) > 1 and len(set(names)) == 1 and not second.cells[0]
    if not (completes or repeats) or any(is_value(name) and not _YEAR.fullmatch(name) for name in names):
        return False
    # Invariant: no more than groups are above the gaps; a row of data has values or texts that come again.
    rows = [row for row in others[:50] if not row.is_blank and 2 * len({*row.cells} & {*names}) <= len(names)]
    below = {cell for row in rows for cell in row.cells if cell}
    return len(rows) > 0 and below.isdisjoint(names)


def _joined(names: list[str], second: Row) -> list[str]:
    """Return the names of two rows together; the name of a group goes on over the gaps beside it."""
    joined, group = [], ""
    for index, name in enumerate(names):
        below = second.fields[index] if index < second.width else ""
        group = name if name.strip() else group
        if not below.strip():
            group = ""
        joined.append(f"{group.strip()} {below.strip()}".strip() if below.strip() else name)
    return joined


def is_header(first: Row, others: list[Row]) -> bool:
    """Return whether the first row holds names: other texts than those below, and no values."""
    names = list(filter(None, first.cells))
    values = list(filter(is_value, names))
    if not names or (values and not _are_names(values, first, others)):
        return False
    if not others or max(map(len, names[:3])) > 200:
        return True
    repeated = 0
    for index, cell in enumerate(first.cells[:50]):
        below = cells_of(others, index)
        if any(map(is_value, filter(None, below[:20]))):
            return True
        repeated += bool(cell) and cell in below
    return repeated == 0


def _are_names(values: list[str], first: Row, others: list[Row]) -> bool:
    """Return whether the values in a first row are names: years, dates or numbers in turn, beside a text or a corner."""
    is_corner = not first.cells[0] and all(first.cells[1:])
    if not is_corner and len(values) == sum(map(bool, first.cells)):
        return False
    if date_format(values, ""):
        return not any(date_format([cell], "") for row in others[:1] for cell in row.cells)
    first_number = values[0] if values[0] in ("0", "1") else "0"
    in_turn = list(map(str, range(int(first_number), int(first_number) + len(values))))
    return all(map(_YEAR.fullmatch, values)) or (is_corner and values == in_turn)


def cells_of(rows: list[Row], index: int) -> list[str]:
    """Return the cells of a column."""
    return [row.cells[index] for row in rows if index < row.width]


def without_units(layout: Layout, body: list[Row]) -> list[Row]:
    """Take away a row of units, such as `(kg)`, below the header of columns of numbers."""
    if layout.names is None or len(body) < 2:
        return body
    has_unit = False
    for index, unit in enumerate(body[0].cells):
        is_numeric = number_format({*filter(None, cells_of(body[1:30], index))}) is not None
        if not _is_unit(unit, is_numeric=is_numeric):
            return body
        has_unit = has_unit or (is_numeric and unit not in ("", "-"))
    if not has_unit:
        return body
    layout.skipped["units"] = body[:1]
    return body[1:]


def _is_unit(cell: str, *, is_numeric: bool) -> bool:
    """Return whether a cell may be in a row of units: above numbers any unit, else one in brackets or none."""
    if len(cell) > MAX_UNIT_CHARS or not _UNIT_ROW.fullmatch(cell):
        return False
    return is_numeric or cell in ("", "-") or cell[0] in "(["


def has_no_value(row: Row) -> bool:
    """Return whether a row has no number and no date."""
    return not any(map(is_value, filter(None, row.cells)))


def are_values(cells: Sequence[str]) -> bool:
    """Return whether cells are numbers, dates or empty, and not all empty."""
    return any(cells) and all(map(is_value, cells))
