"""Delimited text: how it is read, what the line that reads it leaves out, and what is not certain."""

from __future__ import annotations

import importlib.util
import io
import itertools
import re
from collections.abc import Iterable
from operator import attrgetter
from typing import Any

from .columns import classify, literal
from .dialect import Dialect, Row
from .encoding import Text
from .frames import Json, describe_lists, describe_rows, plural
from .layout import Layout, find_layout, listed
from .pandas_lines import profile_with_pandas
from .source import Source
from .table import Table, add_hint, add_note, dialect_arguments, quoted, separators, unique_names


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


VERBATIM_ROWS = 3
MAX_SHOWN_CHARS = 40
MAX_COLUMNS = 10_000
_DIGITS = re.compile(r"(\d+)[^\W\d]+")


WHOLE_CHARS = 1500
"""Characters of a file that is shown as a whole."""


def profile_delimited(source: Source, text: Text, dialect: Dialect, *, is_spaced: bool = False) -> Json:
    """Describe delimited text, and how to read it; columns that are spaced are given here with tabs between them."""
    layout = find_layout(text.text, dialect, is_complete=source.is_complete)
    table = Table(source, text, layout, is_spaced)
    if not layout.rows and (layout.names is None or layout.start > 2):
        raise ValueError("no table")
    if layout.full_width > MAX_COLUMNS:
        note = f"its {layout.full_width:,} columns are too many to be looked at"
        return {"format": "CSV", "facts": _facts(table), "read": [], "notes": [note]}
    note_omissions(table)
    has_pandas = importlib.util.find_spec("pandas") is not None
    profile = profile_with_pandas(table) if has_pandas else profile_with_csv(table)
    profile["first_rows"] = _verbatim(table)
    if source.is_complete and len(text.text) <= WHOLE_CHARS:
        profile["all_rows"] = text.text.rstrip("\n").splitlines()
    profile["facts"] += _facts(table)
    return profile | {"notes": table.notes, "hints": table.hints}


def note_omissions(table: Table) -> None:
    """Note which lines of the file are no rows of the table, and what is beyond its header."""
    layout = table.layout
    _note_rows(table, layout.titles, "above the table")
    for reason, rows in layout.skipped.items():
        _note_rows(table, rows, reason)
    above = layout.titles[-1:]
    if layout.width == 2 and above and above[0].index == layout.start - 1 and above[0].width == 1:
        what = f"whether {quoted(layout.dialect.delimiter)} divides fields is not certain"
        add_note(table, f"{what}, as line {above[0].line + 1} has none")
    if layout.width == 1 and layout.dialect.delimiter == ";" and layout.rows:
        add_note(table, 'whether "," divides fields is not certain: it is read as a decimal comma')
    if table.is_spaced and any(map(_may_be_two, map(layout.column, range(layout.width)))):
        add_note(table, "columns may touch each other, as one has digits and then letters")
    _note_names(table)
    below = layout.remarks
    if layout.other_tables:
        rest = f", with {plural(len(below), 'line')} below this table" if below else ""
        add_note(table, f"another table is left out, which begins in {listed(layout.other_tables)}{rest}")
    else:
        _note_rows(table, below, "a total" if layout.total else "a remark")
    if layout.further_headers:
        add_note(
            table,
            f"{listed(layout.further_headers)} may be the header of another table, which is read as well",
        )
    _note_surplus(table)


def _note_names(table: Table) -> None:
    layout = table.layout
    if joined := _joined_name(layout):
        divided = f"fields are divided by {quoted(layout.dialect.delimiter)}"
        add_note(table, f"whether {quoted(joined)} is one name is not certain: {divided}")
    if layout.header_rows > 1:
        add_note(table, f"the names of the columns are in {layout.header_rows} rows")
    elif layout.names is None and layout.may_have_header:
        add_note(table, "whether the first row holds names is not certain: it is read as the others")


def _joined_name(layout: Layout) -> str:
    """Return a name that another delimiter would divide; empty if there is none."""
    others = ";,|".replace(layout.dialect.delimiter, "")
    return next(filter(re.compile(rf"\w[{others}]\w").search, layout.names or []), "")


def _may_be_two(texts: list[str]) -> bool:
    """Return whether texts have as many digits each, and then words that are not as long."""
    matches = list(filter(None, map(_DIGITS.fullmatch, texts)))
    widths = {len(match[1]) for match in matches}
    return len(matches) == len(texts) > 1 and len(widths) == 1 and len(set(map(len, texts))) > 1


def _note_surplus(table: Table) -> None:
    layout = table.layout
    lines = listed(layout.surplus_lines)
    if layout.surplus == "labels":
        add_note(
            table, 'rows have one field more than the header: the first is read as a label, in "Unnamed: 0"'
        )
    elif layout.surplus and len(layout.surplus_lines) == len(layout.rows):
        add_note(
            table, "each row has more fields than the header: a name may belong to the column on its right"
        )
    elif layout.surplus in ("values", "cut"):
        count = plural(len(layout.surplus_lines), "row")
        what = "left out" if layout.surplus == "cut" else "kept in columns without a name"
        add_note(table, f"{count} with more fields than the header ({lines}): what is beyond is {what}")


def _note_rows(table: Table, rows: list[Row], reason: str) -> None:
    if not rows:
        return
    lines = listed(row.line + 1 for row in rows)
    text = next(filter(None, rows[0].cells), "")[:MAX_SHOWN_CHARS]
    add_note(table, f"{plural(len(rows), 'line')} left out: {lines} ({reason}: {quoted(text)})")


def _facts(table: Table) -> list[str]:
    layout, facts = table.layout, [f"encoding {table.text.encoding}"]
    delimiter = layout.dialect.delimiter
    facts.append("columns divided by spaces" if table.is_spaced else f"delimiter {quoted(delimiter)}")
    if table.decimal == ",":
        facts.append('decimal ","')
    if table.thousands:
        facts.append(f"thousands {quoted(table.thousands)}")
    if layout.start:
        facts.append(f"{plural(layout.start, 'line')} before the {'header' if layout.names else 'rows'}")
    if layout.names is None:
        facts.append("no header, so columns are numbered from 0")
    if "units" in layout.skipped:
        facts.append("a row of units below the header")
    return facts


def _verbatim(table: Table) -> list[str]:
    """Return header and first rows as they are in the file."""
    rows = table.layout.rows[:VERBATIM_ROWS]
    lines = io.StringIO(table.text.text[:200_000], newline=None)
    end = rows[-1].next_line if rows else table.layout.start + 1
    shown: Iterable[str] = itertools.islice(
        lines, table.layout.first_line, min(end, table.layout.first_line + 12)
    )
    return [line.rstrip("\n")[:400] for line in shown]
