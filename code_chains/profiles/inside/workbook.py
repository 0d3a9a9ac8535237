"""Spreadsheets: their sheets, where the table of each is, and the line that reads it."""

from __future__ import annotations

import importlib.util
import itertools
import re
import warnings
import zipfile
from operator import attrgetter
from typing import Any

from .columns import Column, classify, conversion, literal, mapping, with_conversions
from .frames import Json, describe_frame, plural
from .source import Source

Cells = tuple[Any, ...]
MAX_SHEETS, MAX_HEADER_ROWS, MAX_WIDTH = 8, 30, 300
MAX_EXPANDED_BYTES = 200 << 20
"""A spreadsheet that expands to more is not opened."""
MAX_BODY_ROWS, MAX_TEXT_COLUMNS = 300, 15
MAX_CELLS = 40_000
"""Cells that are read of a sheet; openpyxl reads some ten thousand in a tenth of a second."""


def profile_workbook(source: Source) -> Json:
    """Describe the sheets of a workbook."""
    with zipfile.ZipFile(source.name) as archive:
        expanded = sum(map(attrgetter("file_size"), archive.infolist()))
        if expanded > MAX_EXPANDED_BYTES:
            return {"format": "Excel workbook", "facts": [f"expands to {expanded:,} bytes"], "read": []}
        if importlib.util.find_spec("openpyxl") is None or importlib.util.find_spec("pandas") is None:
            return _without_packages(archive)
    return _with_packages(source)


def _without_packages(archive: zipfile.ZipFile) -> Json:
    text = archive.read("xl/workbook.xml")[:100_000].decode("utf-8", "replace")
    names = re.findall(r'<sheet [^>]*?name="([^"]*)"', text)
    notes = ["openpyxl or pandas is not installed, so it cannot be read as a table"]
    return {
        "format": "Excel workbook",
        "facts": [f"sheets {', '.join(names[:20])}"],
        "read": [],
        "notes": notes,
    }


def _with_packages(source: Source) -> Json:
    import openpyxl

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        book = openpyxl.load_workbook(source.name, read_only=True, data_only=True)
        sheets = [sheet for sheet in book.worksheets if hasattr(sheet, "iter_rows")]
        parts = [_profile_sheet(source, sheet, len(sheets)) for sheet in sheets[:MAX_SHEETS]]
    facts = [plural(len(sheets), "sheet")]
    return {"format": "Excel workbook", "facts": facts, "read": [], "parts": parts}


def _profile_sheet(source: Source, sheet: Any, count: int) -> Json:
    width = min(sheet.max_column or MAX_WIDTH, MAX_WIDTH)
    head = list(sheet.iter_rows(max_row=MAX_HEADER_ROWS, max_col=width, values_only=True))
    facts = [] if sheet.sheet_state == "visible" else ["hidden"]
    start = _find_header(head)
    if start is None:
        return {"name": sheet.title, "facts": [*facts, "empty"]}
    first, last = _span(head[start:])
    arguments = _arguments(sheet, start, first, last, count)
    texts = _text_columns(head[start], sheet, start)
    typed = [column for column in texts if column.kind in ("number", "identifier") or column.may_be_numbers]
    if typed:  # Texts that look like numbers would be read as such.
        arguments += f", dtype={mapping(dict.fromkeys(map(attrgetter('key'), typed), 'str'))}"
    call = f"pd.read_excel({literal(source.name)}{arguments}"
    nrows = max(20, MAX_CELLS // max(last - first + 1, 1))
    lines, frame = _run_lines(call, nrows, texts)
    rows = plural(len(frame), "row")
    if len(frame) >= nrows and sheet.max_row:
        rows = f"about {sheet.max_row - start - 1:,} rows"
    facts.append(rows)
    if start:
        facts.append(f"{start} rows before the header")
    if len(frame.columns) and bool(frame.isna().all().all()) and len(frame):
        facts.append("formulas without stored results")
    shown = [", ".join(map(_cell, row[first : last + 1]))[:400] for row in head[start : start + 4]]
    return {
        "name": sheet.title,
        "facts": facts,
        "read": ["import pandas as pd", *lines],
        "columns": describe_frame(frame),
        "column_count": len(frame.columns),
        "first_rows": shown,
    }


def _cell(value: object) -> str:
    return "" if value is None else str(value)[:60]


def _find_header(rows: list[Cells]) -> int | None:
    """Return the index of the first row that fills most columns."""
    filled = [len(row) - row.count(None) for row in rows]
    widest = max(filled, default=0)
    needed = min(widest, (widest + 1) // 2 + 1)
    for index, count in enumerate(filled):
        if count >= needed > 0:
            return index
    return None


def _span(rows: list[Cells]) -> tuple[int, int]:
    """Return the first and the last column with a value."""
    columns = itertools.zip_longest(*rows)
    used = [index for index, column in enumerate(columns) if column.count(None) < len(column)]
    return used[0], used[-1]


def _arguments(sheet: Any, start: int, first: int, last: int, count: int) -> str:
    from openpyxl.utils import get_column_letter

    arguments = f", sheet_name={literal(sheet.title)}" if count > 1 else ""
    if start:
        arguments += f", skiprows={start}"
    if first:
        arguments += f', usecols="{get_column_letter(first + 1)}:{get_column_letter(last + 1)}"'
    return arguments


def _text_columns(names: Cells, sheet: Any, start: int) -> list[Column]:
    """Return the columns that hold texts alone, by the rows below a header."""
    last_row = start + 2 + MAX_BODY_ROWS
    rows = sheet.iter_rows(min_row=start + 2, max_row=last_row, max_col=len(names), values_only=True)
    columns = []
    for name, values in zip(names, itertools.zip_longest(*rows), strict=False):
        texts = [value for value in values if value is not None]
        if isinstance(name, str) and names.count(name) == 1 and set(map(type, texts)) == {str}:
            column = classify(name, texts)
            column.key = literal(name)
            columns.append(column)
    return columns[:MAX_TEXT_COLUMNS]


def _run_lines(call: str, nrows: int, texts: list[Column]) -> tuple[list[str], Any]:
    """Return the lines that read a sheet and convert its numbers that are texts, and what they return."""
    import pandas as pd

    conversions = {}
    for column in texts:
        if column.kind == "date" and column.date and not column.date.is_ambiguous:
            form = f'format="{column.date.format}", errors="coerce"'
            conversions[column.key] = f"pd.to_datetime(df[{column.key}], {form})"
        elif column.kind == "number" and column.number:
            conversions[column.key] = conversion(column, column.number.resolved("."))
    lines = with_conversions(f"{call})", conversions)
    names: dict[str, Any] = {"pd": pd}
    exec("\n".join(with_conversions(f"{call}, nrows={nrows})", conversions)), names)
    return lines, names["df"]
