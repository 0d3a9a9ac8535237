"""Delimited text where pandas is missing: lines of the module csv that read it."""

from __future__ import annotations

from operator import attrgetter
from typing import Any

from .columns import classify, literal
from .frames import Json, describe_lists, describe_rows, plural
from .table import Table, add_hint, dialect_arguments, separators, unique_names


def profile_with_csv(table: Table) -> Json:
    """Return a profile of what lines of the module csv return."""
    layout = table.layout
    names = layout.names or list(map(str, range(layout.width)))
    for index, name in enumerate(names):
        column = classify(name, layout.column(index))
        column.key = literal(name)
        table.columns.append(column)
    table.decimal, table.thousands = separators(table)
    lines = _csv_lines(table)
    found: dict[str, Any] = {}
    exec("\n".join(lines), found)
    rows = found["rows"]
    columns = describe_rows(rows) if layout.names else describe_lists(names, rows)
    for described, column in zip(columns, table.columns, strict=False):
        if column.kind in ("number", "date"):
            described["type"] = f"text of {column.kind}s"
    _add_number_note(table)
    count = plural(len(rows), "row") if table.source.is_complete else "rows"
    facts = [count, plural(len(columns), "column")]
    return {
        "format": "CSV",
        "facts": facts,
        "read": lines,
        "columns": columns,
        "column_count": len(columns),
    }


def _csv_lines(table: Table) -> list[str]:
    layout = table.layout
    names, first = "records[0]", 1
    if layout.header_rows != 1 or layout.surplus:
        names, first = f"[{', '.join(map(literal, unique_names(table)))}]", layout.header_rows
    if layout.surplus == "labels":
        names = f'["Unnamed: 0", *{names}]'
    footer = len(layout.remarks)
    part = f"[{first if layout.names else ''}:{-footer if footer else ''}]"
    rows = f"[dict(zip({names}, row)) for row in records{part}]" if layout.names else f"records{part}"
    return [
        f"import csv{', ' + table.source.compression if table.source.compression else ''}",
        f"with {table.source.opening(table.text.encoding, table.text.errors, keeps_lines=True)} as file:",
        f"    records = [row for number, row in enumerate(csv.reader({_reader(table)})) if any(row){_condition(table)}]",
        f"rows = {rows.replace('[:]', '')}",
    ]


def _reader(table: Table) -> str:
    arguments = dialect_arguments(table.layout.dialect, delimiter="delimiter", no_quotes="csv.QUOTE_NONE")
    return ", ".join(["file", *map("=".join, arguments.items())])


def _condition(table: Table) -> str:
    layout = table.layout
    if skipped := list(map(attrgetter("index"), layout.skipped_rows)):
        return f" and number not in {[*range(layout.start), *skipped]}"
    return f" and number >= {layout.start}" if layout.start else ""


def _add_number_note(table: Table) -> None:
    steps = f'.replace("{table.thousands}", "")' if table.thousands else ""
    if table.decimal == ",":
        steps += '.replace(",", ".")'
    if steps and table.columns_of("number"):
        add_hint(table, f"all fields are text; numbers are read with float(text{steps})")
