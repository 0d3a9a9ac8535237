"""Spreadsheets: their sheets, where the table of each is, and the line that reads it."""

from __future__ import annotations

import importlib.util
import re
import warnings
import zipfile
from typing import Any

from .columns import Column, classify, conversion, literal, with_conversions
from .frames import Json, describe_frame, plural
from .source import Source

MAX_SHEETS, MAX_HEADER_ROWS, MAX_WIDTH = 8, 30, 300
MAX_EXPANDED_BYTES = 200 << 20
"""A spreadsheet that expands to more is not opened."""
MAX_BODY_ROWS, MAX_TEXT_COLUMNS = 300, 15
MAX_CELLS = 40_000
"""Cells that are read of a sheet; openpyxl reads some ten thousand in a tenth of a second."""


def profile_workbook(source: Source) -> Json:
    """Describe the sheets of a workbook."""
    with zipfile.ZipFile(source.name) as archive:
        expanded = sum(entry.file_size for entry in archive.infolist())
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
    head = [list(row) for row in sheet.iter_rows(max_row=MAX_HEADER_ROWS, max_col=width, values_only=True)]
    hidden = [] if sheet.sheet_state == "visible" else ["hidden"]
    start = _find_header(head)
    if start is None:
        return {"name": sheet.title, "facts": [*hidden, "empty"]}
    first, last = _span(head[start:])
    arguments = _arguments(sheet, start, first, last, count)
    texts = _text_columns(head[start], _body(sheet, start, width))
    typed = [column for column in texts if column.kind in ("number", "identifier") or column.may_be_numbers]
    if typed:  # Texts that look like numbers would be read as such.
        arguments += ", dtype={" + ", ".join(f"{column.key}: str" for column in typed) + "}"
    call = f"pd.read_excel({literal(source.name)}{arguments}"
    nrows = max(20, MAX_CELLS // max(last - first + 1, 1))
    lines, frame = _run_lines(call, nrows, texts)
    rows = plural(len(frame), "row")
    if len(frame) >= nrows and sheet.max_row:
        rows = f"about {sheet.max_row - start - 1:,} rows"
    facts = [*hidden, rows, *([f"{start} rows before the header"] if start else [])]
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


def _find_header(rows: list[list[Any]]) -> int | None:
    """Return the index of the first row that fills most columns."""
    filled = [sum(1 for value in row if value is not None) for row in rows]
    widest = max(filled, default=0)
    if widest == 0:
        return None
    needed = widest if widest <= 2 else (widest + 1) // 2 + 1
    return next(index for index, count in enumerate(filled) if count >= min(needed, widest))


def _span(rows: list[list[Any]]) -> tuple[int, int]:
    """Return the first and the last column with a value."""
    used = {index for row in rows for index, value in enumerate(row) if value is not None}
    return min(used), max(used)


def _arguments(sheet: Any, start: int, first: int, last: int, count: int) -> str:
    from openpyxl.utils import get_column_letter

    arguments = f", sheet_name={literal(sheet.title)}" if count > 1 else ""
    if start:
        arguments += f", skiprows={start}"
    if first:
        arguments += f', usecols="{get_column_letter(first + 1)}:{get_column_letter(last + 1)}"'
    return arguments


def _body(sheet: Any, start: int, width: int) -> list[list[Any]]:
    """Return rows below a header."""
    rows = sheet.iter_rows(
        min_row=start + 2, max_row=start + 2 + MAX_BODY_ROWS, max_col=width, values_only=True
    )
    return [list(row) for row in rows]


def _text_columns(names: list[Any], rows: list[list[Any]]) -> list[Column]:
    """Return the columns that hold texts alone."""
    columns = []
    for index, name in enumerate(names):
        values = [row[index] for row in rows if index < len(row) and row[index] is not None]
        if (
            values
            and isinstance(name, str)
            and names.count(name) == 1
            and all(isinstance(value, str) for value in values)
        ):
            column = classify(name, values)
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
