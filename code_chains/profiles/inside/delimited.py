"""Delimited text: the line that reads it, proven by running it, and what the line returns."""

from __future__ import annotations

import importlib.util
import itertools
import warnings
from collections import Counter
from dataclasses import dataclass, field
from typing import Any

from .columns import Column, classify, conversion, literal
from .dialect import Layout, find_layout
from .encoding import Text
from .frames import Json, describe_frame, describe_rows
from .numbers import NumberFormat
from .source import Source

PROFILED_ROWS = 200_000
"""Rows that are read; of longer files these are the sample."""
PROFILED_CELLS = 4_000_000
MAX_SPECIAL_COLUMNS = 15
"""Columns that the line treats one by one."""
MAX_PASSES = 3
MAX_DISTINCT = 5_000
VERBATIM_ROWS = 3


@dataclass
class Table:
    """A table of text on its way to a profile."""

    source: Source
    text: Text
    layout: Layout
    columns: list[Column] = field(default_factory=list)
    arguments: dict[str, str] = field(default_factory=dict)
    conversions: list[str] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)
    decimal: str = "."
    thousands: str = ""


def profile_delimited(source: Source, text: Text, delimiter: str) -> Json:
    """Describe delimited text, and how to read it."""
    layout = find_layout(text.text, delimiter, is_complete=source.is_complete)
    table = Table(source, text, layout)
    if not layout.rows and layout.header is None:
        return {"format": "text without a table", "facts": [], "read": []}
    has_pandas = importlib.util.find_spec("pandas") is not None
    profile = _with_pandas(table) if has_pandas else _with_csv(table)
    profile["first_rows"] = _verbatim(table)
    profile["facts"] += _facts(table)
    profile["notes"] = [*profile.get("notes", []), *table.notes]
    return profile


def _facts(table: Table) -> list[str]:
    layout, facts = (
        table.layout,
        [f"encoding {table.text.encoding}", f"delimiter {_quoted(table.layout.delimiter)}"],
    )
    if table.decimal == ",":
        facts.append('decimal ","')
    if table.thousands:
        facts.append(f"thousands {_quoted(table.thousands)}")
    if layout.skipped_lines:
        facts.append(
            f"{_plural(layout.skipped_lines, 'line')} before the {'header' if layout.header else 'rows'}"
        )
    if layout.header is None:
        facts.append("no header, so columns are numbered from 0")
    if layout.unit_lines:
        facts.append("a row of units below the header")
    return facts


def _quoted(text: str) -> str:
    return f'"{repr(text)[1:-1]}"'


def _plural(count: int, word: str) -> str:
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"


def _verbatim(table: Table) -> list[str]:
    """Return header and first rows as they are in the file."""
    layout = table.layout
    last = layout.rows[VERBATIM_ROWS - 1 : VERBATIM_ROWS] or layout.rows[-1:]
    end = last[0].next_line if last else layout.skipped_lines + 1
    lines = itertools.islice(
        table.text.text[:200_000].splitlines(), layout.skipped_lines, min(end, layout.skipped_lines + 12)
    )
    return [line[:400] for line in lines]


# -- with pandas ---------------------------------------------------------------------------------------------------------


def _with_pandas(table: Table) -> Json:
    """Return a profile of what the line of pandas returns; the line is corrected until columns are what they seem."""
    table.arguments = _frame_arguments(table)
    keys = list(_read(table, nrows=0).columns)
    for index, key in enumerate(keys[: max(table.layout.width, 1)]):
        column = classify(str(key), table.layout.column(index))
        column.key = literal(key) if isinstance(key, str) else repr(key)
        table.columns.append(column)
    sampled = max(100, min(PROFILED_ROWS, PROFILED_CELLS // max(len(keys), 1)))
    if table.layout.footer and not table.layout.is_complete:  # Only now it is known how many rows there are.
        table.arguments["nrows"] = str(
            max(0, len(_read(table, nrows=10 * PROFILED_ROWS)) - len(table.layout.footer))
        )
    for _ in range(MAX_PASSES):
        _add_types(table)
        frame = _read(table, nrows=sampled + 1)
        if not _corrected(table, frame):
            break
    return _frame_profile(table, frame, sampled)


def _frame_profile(table: Table, frame: Any, sampled: int) -> Json:
    is_sample = len(frame) > sampled or not table.source.is_complete
    rows = f"{len(frame):,} rows"
    notes = []
    if is_sample and (total := table.source.count_lines()) > len(frame):
        rows = f"about {total - table.layout.skipped_lines - (table.layout.header is not None):,} rows"
        notes.append(f"types and ranges are those of the first {len(frame):,} rows")
    return {
        "format": "CSV" if table.layout.delimiter != "\t" else "tab-separated text",
        "facts": [rows, _plural(len(frame.columns), "column")],
        "read": ["import pandas as pd", *_lines(table)],
        "columns": describe_frame(frame),
        "column_count": len(frame.columns),
        "notes": notes,
    }


def _frame_arguments(table: Table) -> dict[str, str]:
    """Return the arguments that say where the table is; those about columns come later."""
    layout, arguments = table.layout, dict[str, str]()
    if layout.delimiter != ",":
        arguments["sep"] = _quoted(layout.delimiter)
    if table.text.encoding not in ("utf-8", "utf-8-sig"):
        arguments["encoding"] = _quoted(table.text.encoding)
    if table.text.errors != "strict":
        arguments["encoding_errors"] = _quoted(table.text.errors)
    if layout.unit_lines:
        arguments["skiprows"] = repr([*range(layout.skipped_lines), *layout.unit_lines])
    elif layout.skipped_lines:
        arguments["skiprows"] = str(layout.skipped_lines)
    if layout.header is None:
        arguments["header"] = "None"
    elif len(layout.names) > 1 and all(name.startswith(" ") for name in layout.names[1:]):
        arguments["skipinitialspace"] = "True"
    return arguments | _row_arguments(table)


def _row_arguments(table: Table) -> dict[str, str]:
    layout, arguments = table.layout, dict[str, str]()
    if layout.has_trailing_delimiter:
        arguments["index_col"] = "False"
    if layout.has_comments:
        arguments["comment"] = '"#"'
    if layout.long_rows:
        arguments["on_bad_lines"] = '"skip"'
        table.notes.append(
            f"{_plural(layout.long_rows, 'row')} with more fields than the others are left out"
        )
    if layout.footer and layout.is_complete:
        arguments["nrows"] = str(len(layout.rows) + layout.blank_lines)
    if layout.footer:
        what = "a row of totals" if layout.total else "a remark"
        table.notes.append(f"the table ends with {what}, which this leaves out")
    return arguments


def _lines(table: Table) -> list[str]:
    arguments = "".join(f", {name}={value}" for name, value in table.arguments.items())
    lines = [f"df = pd.read_csv({literal(table.source.name)}{arguments})"]
    if table.layout.blank_lines:
        lines.append('df = df.dropna(how="all")')
    if (
        any(column.name != column.name.strip() for column in table.columns)
        and "skipinitialspace" not in table.arguments
    ):
        lines.append("df.columns = df.columns.str.strip()")
        return [*lines, *(line.replace("df[", "df[", 1) for line in table.conversions)]
    return [*lines, *table.conversions]


def _read(table: Table, *, nrows: int) -> Any:
    """Run the lines; of the file at most so many rows."""
    import pandas as pd

    arguments = dict(table.arguments)
    limit = min(nrows, int(arguments.get("nrows", nrows)))
    arguments["nrows"] = str(limit)
    shortened = Table(table.source, table.text, table.layout, table.columns, arguments, table.conversions)
    if not nrows:
        for name in ("dtype", "na_values", "parse_dates", "date_format"):
            arguments.pop(name, None)
        shortened.conversions = []
    names: dict[str, Any] = {"pd": pd}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec("\n".join(_lines(shortened)), names)
    return names["df"]


def _add_types(table: Table) -> None:
    """Set the arguments about columns, and the lines that convert what no argument can."""
    for name in (
        "decimal",
        "thousands",
        "dtype",
        "parse_dates",
        "date_format",
        "na_values",
        "keep_default_na",
    ):
        table.arguments.pop(name, None)
    table.conversions = []
    table.decimal, table.thousands = _separators(table)
    if table.decimal != ".":
        table.arguments["decimal"] = _quoted(table.decimal)
    if table.thousands:
        table.arguments["thousands"] = _quoted(table.thousands)
    texts = [column for column in table.columns if _is_read_as_text(table, column)]
    if texts:
        table.arguments["dtype"] = _type_argument(table, texts)
    _add_dates(table)
    _add_missing(table)
    for column in table.columns:
        if column.kind == "number" and column.number and not _is_read_as_number(table, column):
            table.conversions.append(conversion(column, column.number.resolved(table.decimal)))
            _add_number_notes(table, column)
    del table.conversions[MAX_SPECIAL_COLUMNS:]


def _add_number_notes(table: Table, column: Column) -> None:
    if column.number is not None and column.number.units:
        _add_note(table, f"{column.key} is in {' or '.join(column.number.units)}")
    if column.errors:
        _add_note(table, f"texts in {column.key} that are no numbers become missing")


def _type_argument(table: Table, texts: list[Column]) -> str:
    """Return the types of columns that stay text; of all if that is shorter, which is right if all are."""
    if len(texts) == len(table.columns) and len(texts) > 1:
        return "str"
    return _mapping({column.key: "str" for column in texts[: 2 * MAX_SPECIAL_COLUMNS]})


def _mapping(items: dict[str, str]) -> str:
    return "{" + ", ".join(f"{key}: {value}" for key, value in items.items()) + "}"


def _separators(table: Table) -> tuple[str, str]:
    """Return the separators of most numbers of the file."""
    formats = [column.number for column in table.columns if column.kind == "number" and column.number]
    plain = [number for number in formats if number.is_plain]
    decimal = _decimal(plain) or _decimal(formats)
    if not decimal:
        decimal = "," if table.layout.delimiter == ";" else "."
        if ambiguous := [number.ambiguous for number in formats if number.ambiguous]:
            what = f"{_quoted(ambiguous[0])} is a decimal or a thousands separator"
            _add_note(table, f"whether {what} is not certain")
    resolved = [number.resolved(decimal) for number in plain]
    thousands = Counter(number.thousands for number in resolved if _is_thousands(number.thousands))
    separator = thousands.most_common(1)[0][0] if thousands else ""
    has_decimals = any(number.decimal == decimal for number in resolved)
    return (decimal if has_decimals or separator == "." else "."), separator


def _decimal(formats: list[NumberFormat]) -> str:
    """Return the most common decimal separator; empty if no number has one for certain."""
    counts = Counter(number.decimal for number in formats if number.decimal)
    return counts.most_common(1)[0][0] if counts else ""


def _is_thousands(separator: str) -> bool:
    """Return whether pandas takes a thousands separator."""
    return len(separator) == 1 and separator.isascii()


def _is_read_as_number(table: Table, column: Column) -> bool:
    """Return whether `decimal` and `thousands` are enough to read a column of numbers."""
    if column.number is None or not column.number.is_plain or column.errors:
        return False
    number = column.number.resolved(table.decimal)
    return number.decimal in ("", table.decimal) and number.thousands in ("", table.thousands)


def _is_read_as_text(table: Table, column: Column) -> bool:
    if column.kind == "number":
        return not _is_read_as_number(table, column)
    if column.kind == "date":
        return column.date is not None and column.date.has_zones
    return column.kind == "identifier" or column.may_be_numbers


def _add_dates(table: Table) -> None:
    dates = [(column, column.date) for column in table.columns if column.kind == "date" and column.date]
    others = [found for _, found in dates if not found.is_ambiguous]
    month_first = any(found.format.startswith("%m") for found in others)
    day_first = table.decimal == "," or any(found.format.startswith("%d") for found in others)
    formats = {}
    for column, found in dates[:MAX_SPECIAL_COLUMNS]:
        if found.is_ambiguous and (month_first or not day_first):
            found = found.with_month_first()
        if found.is_ambiguous:
            order = "day first" if found.format.startswith("%d") else "month first"
            _add_note(table, f"dates of {column.key} are read {order}, which they do not prove")
        if found.has_zones:
            table.conversions.append(f"df[{column.key}] = pd.to_datetime(df[{column.key}], utc=True)")
        else:
            formats[column.key] = _quoted(found.format)
    if formats:
        table.arguments["parse_dates"] = f"[{', '.join(formats)}]"
        is_one = len(set(formats.values())) == 1
        value = next(iter(formats.values())) if is_one else _mapping(formats)
        if value != '"ISO8601"':
            table.arguments["date_format"] = value


def _add_note(table: Table, note: str) -> None:
    if note not in table.notes:
        table.notes.append(note)


def _add_missing(table: Table) -> None:
    marks = {
        column.key: column.missing
        for column in table.columns
        if column.missing and not _is_read_as_text(table, column)
    }
    if marks:
        words = sorted({mark for each in marks.values() for mark in each})
        texts = [column for column in table.columns if column.key not in marks]
        if any(column.kind in ("text", "identifier") for column in texts):
            table.arguments["na_values"] = _mapping(
                {
                    key: f"[{', '.join(map(literal, each))}]"
                    for key, each in [*marks.items()][:MAX_SPECIAL_COLUMNS]
                }
            )
        else:
            table.arguments["na_values"] = f"[{', '.join(map(literal, words))}]"
    if any(column.has_code_na for column in table.columns):
        table.arguments |= {"keep_default_na": "False"}
        table.arguments.setdefault("na_values", '[""]')


def _corrected(table: Table, frame: Any) -> bool:
    """Classify columns again that are not read as what they seemed; return whether there are any."""
    found = False
    for index, column in enumerate(table.columns):
        if index >= len(frame.columns) or column.kind not in ("number", "date"):
            continue
        series = frame.iloc[:, index]
        if series.dtype.kind not in "OTSU" and str(series.dtype) not in ("object", "str", "string"):
            continue
        texts = [str(value) for value in series.dropna().unique()]
        if not texts:
            continue
        again = classify(column.name, _telling(texts, column))
        again.key = column.key
        again.may_be_numbers = True
        table.columns[index] = (
            again if again != column else Column(column.name, "text", key=column.key, may_be_numbers=True)
        )
        found = True
    return found


def _telling(texts: list[str], column: Column) -> list[str]:
    """Return some of a column's texts, among them those that are not what the others are."""
    if len(texts) <= MAX_DISTINCT:
        return texts
    odd = [text for text in texts if classify(column.name, [text]).kind != column.kind]
    return [*texts[:MAX_DISTINCT], *odd[:MAX_DISTINCT]]


# -- without pandas ------------------------------------------------------------------------------------------------------


def _with_csv(table: Table) -> Json:
    """Return a profile of what lines of the module csv return."""
    layout = table.layout
    for index, name in enumerate(layout.names):
        column = classify(name, layout.column(index))
        column.key = literal(name)
        table.columns.append(column)
    table.decimal, table.thousands = _separators(table)
    lines = _csv_lines(table)
    names: dict[str, Any] = {}
    exec("\n".join(lines), names)
    rows = names["rows"]
    columns = describe_rows(
        rows if layout.header else [dict(zip(layout.names, row, strict=False)) for row in rows]
    )
    for described, column in zip(columns, table.columns, strict=False):
        if column.kind in ("number", "date"):
            described["type"] = f"text of {column.kind}s"
    _add_number_note(table)
    count = f"{len(rows):,} rows" if table.source.is_complete else "rows"
    facts = [count, _plural(len(layout.names), "column")]
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
    delimiter = f", delimiter={_quoted(layout.delimiter)}" if layout.delimiter != "," else ""
    opening = "gzip.open" if table.source.is_compressed else "open"
    mode = ', "rt"' if table.source.is_compressed else ""
    lines = [
        f"import csv{', gzip' if mode else ''}",
        f'with {opening}({literal(table.source.name)}{mode}, encoding={_quoted(table.text.encoding)}, newline="") as file:',
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
    keys = [column.key for column in table.columns if column.kind == "number"]
    steps = f'.replace("{table.thousands}", "")' if table.thousands else ""
    if table.decimal == ",":
        steps += '.replace(",", ".")'
    if keys and steps:
        table.notes.append(f"all fields are text; numbers are read with float(text{steps})")
