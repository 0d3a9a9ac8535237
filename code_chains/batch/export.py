"""Answers as a table for people: CSV or a spreadsheet."""

from __future__ import annotations

import csv
import io
import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from code_chains.errors import InputError, needs
from code_chains.storage.files import atomic_write

COLUMNS = ("id", "query", "answer", "verdict", "reason", "output", "seconds", "error")
_MAX_CELL_CHARS = 32_000
"""A cell of a spreadsheet holds 32,767 characters."""
_NOT_IN_CELLS = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\ufffe\uffff\ud800-\udfff]")
_FORMULA = re.compile(r"^(?:[=@\t\r]|[+-](?!\d*\.?\d+(?:[eE][+-]?\d+)?%?$))")
"""What spreadsheets take for a formula when they open a CSV file."""


def check_table(path: Path, *, may_exist: bool = False) -> None:
    """Raise if no table could be written to a path.

    Args:
        path: The table.
        may_exist: Whether an existing file may be replaced, if it is such a table.

    Raises:
        InputError: The suffix is neither `.csv` nor `.xlsx`, the file exists, or its folder does not.
        ConfigurationError: openpyxl is missing.
    """
    if os.path.lexists(path) and not (may_exist and _is_export(path)):
        raise InputError(f"{str(path)!r} exists. Remove it, or choose another name.")
    if path.suffix.lower() not in (".csv", ".xlsx"):
        raise InputError(f"{str(path)!r} must end with .csv or .xlsx.")
    if not path.parent.is_dir():
        raise InputError(f"The folder {str(path.parent)!r} does not exist. Create it, or choose another.")
    if path.suffix.lower() == ".xlsx":
        with needs("data", "export", path.name):
            import openpyxl  # noqa: F401


def _is_export(path: Path) -> bool:
    """Return whether a file is a table that was exported before."""
    try:
        if path.suffix.lower() == ".csv":
            with path.open(encoding="utf-8-sig") as file:
                return file.readline().strip() == ",".join(COLUMNS)
        from openpyxl import load_workbook

        rows = load_workbook(path, read_only=True).active.iter_rows(max_row=1, values_only=True)
        return next(rows, None) == COLUMNS
    except Exception:  # Whatever it is, it is not a table of ours.
        return False


def export_table(results: Path, path: Path, *, order: Sequence[str] = ()) -> int:
    """Write the answers of a results file, and the failures beside it, as a table; return the number of rows.

    Text is text: what a spreadsheet would take for a formula is not one.

    Args:
        results: The results file.
        path: The table, `.csv` or `.xlsx`; an existing one is replaced.
        order: Ids of questions, in the order of the rows; others follow.

    Raises:
        InputError: The table cannot be written.
    """
    records = [record for file in (results, Path(f"{results}.failed")) for record in _records(file)]
    places = {question_id: place for place, question_id in enumerate(order)}
    records.sort(key=lambda record: places.get(record["id"], len(places)))
    rows = list(map(_row, records))
    content = _as_csv(rows) if path.suffix.lower() == ".csv" else _as_spreadsheet(rows)
    try:
        atomic_write(path, content)
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be written: {error}.") from error
    return len(rows)


def _records(path: Path) -> Iterator[dict[str, Any]]:
    if path.is_file():
        with path.open(encoding="utf-8") as file:
            yield from map(json.loads, file)


def _row(record: dict[str, Any]) -> list[Any]:
    verdict = record.get("verdict") or {}
    values = {**record, "verdict": verdict.get("status"), "reason": verdict.get("reason")}
    return [_cell(values.get(column)) for column in COLUMNS]


def _cell(value: Any) -> Any:
    return (
        _NOT_IN_CELLS.sub("\N{REPLACEMENT CHARACTER}", value[:_MAX_CELL_CHARS])
        if isinstance(value, str)
        else value
    )


def _as_csv(rows: list[list[Any]]) -> bytes:
    text = io.StringIO(newline="")
    writer = csv.writer(text)
    writer.writerow(COLUMNS)
    writer.writerows(map(without_formula, row) for row in rows)
    return text.getvalue().encode("utf-8-sig")  # With the mark by which spreadsheets know UTF-8.


def without_formula(cell: Any) -> Any:
    """Return the content of a cell of a CSV file: what a spreadsheet would take for a formula begins with an apostrophe."""
    return f"'{cell}" if isinstance(cell, str) and _FORMULA.match(cell) else cell


def _as_spreadsheet(rows: list[list[Any]]) -> bytes:
    from openpyxl import Workbook
    from openpyxl.cell import WriteOnlyCell

    book = Workbook(write_only=True)
    sheet = book.create_sheet("Answers")
    sheet.append(COLUMNS)
    for row in rows:
        cells = [WriteOnlyCell(sheet, value) for value in row]
        for cell in cells:
            if isinstance(cell.value, str):
                cell.data_type = "s"  # Never a formula.
        sheet.append(cells)
    target = io.BytesIO()
    book.save(target)
    return target.getvalue()
