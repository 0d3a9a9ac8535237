"""Delimited text where pandas is missing: lines of the module csv that read it."""

from __future__ import annotations

from typing import Any

from .columns import classify, literal
from .frames import Json, describe_lists, describe_rows, plural
from .table import Table, quoted, separators


def profile_with_csv(table: Table) -> Json:
    """Return a profile of what lines of the module csv return."""
    layout = table.layout
    for index, name in enumerate(layout.names):
        column = classify(name, layout.column(index))
        column.key = literal(name)
        table.columns.append(column)
    table.decimal, table.thousands = separators(table)
    lines = _csv_lines(table)
    names: dict[str, Any] = {}
    exec("\n".join(lines), names)
    rows = names["rows"]
    columns = describe_rows(rows) if layout.header else describe_lists(layout.names, rows)
    for described, column in zip(columns, table.columns, strict=False):
        if column.kind in ("number", "date"):
            described["type"] = f"text of {column.kind}s"
    _add_number_note(table)
    count = plural(len(rows), "row") if table.source.is_complete else "rows"
    facts = [count, plural(len(layout.names), "column")]
    return {
        "format": "CSV",
        "facts": facts,
        "read": lines,
        "columns": columns,
        "column_count": len(layout.names),
    }


def _csv_lines(table: Table) -> list[str]:
    layout, skipped = table.layout, [*range(table.layout.skipped_lines), *table.layout.unit_lines]
    reader = "csv.DictReader" if layout.header else "csv.reader"
    delimiter = f", delimiter={quoted(layout.delimiter)}" if layout.delimiter != "," else ""
    opening = "gzip.open" if table.source.is_compressed else "open"
    mode = ', "rt"' if table.source.is_compressed else ""
    lines = [
        f"import csv{', gzip' if mode else ''}",
        f'with {opening}({literal(table.source.name)}{mode}, encoding={quoted(table.text.encoding)}, newline="") as file:',
    ]
    if skipped:
        condition = f"number not in {skipped}" if layout.unit_lines else f"number >= {len(skipped)}"
        lines.append(f"    lines = [line for number, line in enumerate(file) if {condition}]")
        lines.append(f"    rows = list({reader}(lines{delimiter}))")
    else:
        lines.append(f"    rows = list({reader}(file{delimiter}))")
    if layout.footer:
        lines.append(f"rows = rows[:{len(layout.rows)}]")
    return lines


def _add_number_note(table: Table) -> None:
    steps = f'.replace("{table.thousands}", "")' if table.thousands else ""
    if table.decimal == ",":
        steps += '.replace(",", ".")'
    if steps and table.numbers:
        table.notes.append(f"all fields are text; numbers are read with float(text{steps})")
