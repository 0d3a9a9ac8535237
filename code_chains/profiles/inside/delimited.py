"""Delimited text: the line that reads it, proven by running it, and what the line returns."""

from __future__ import annotations

import importlib.util
import itertools
import warnings
from collections.abc import Iterable
from dataclasses import replace
from operator import attrgetter
from typing import Any

from .columns import Column, classify, conversion, literal, mapping, with_conversions
from .csv_lines import profile_with_csv
from .dialect import find_layout
from .encoding import Text
from .frames import Json, describe_frame, plural
from .source import Source
from .table import Table, add_note, is_read_as_number, quoted, separators

PROFILED_ROWS = 200_000
"""Rows that are read; of longer files these are the sample."""
PROFILED_CELLS = 4_000_000
MAX_SPECIAL_COLUMNS = 15
"""Columns that the line treats one by one."""
MAX_PASSES = 3
MAX_DISTINCT = 5_000
VERBATIM_ROWS = 3
STRIP = "df.columns = df.columns.str.strip()"
LONG_ROWS = "rows with more fields than the others are left out"


def profile_delimited(source: Source, text: Text, delimiter: str, *, is_spaced: bool = False) -> Json:
    """Describe delimited text, and how to read it; columns that are spaced are given here with tabs between them."""
    layout = find_layout(text.text, delimiter, is_complete=source.is_complete)
    table = Table(source, text, layout, is_spaced)
    if not layout.rows and (layout.header is None or layout.skipped_lines > 2):
        raise ValueError("no table")
    has_pandas = importlib.util.find_spec("pandas") is not None
    profile = _with_pandas(table) if has_pandas else profile_with_csv(table)
    profile["first_rows"] = _verbatim(table)
    profile["facts"] += _facts(table)
    profile["notes"] = [*profile.get("notes", []), *table.notes]
    return profile


def _facts(table: Table) -> list[str]:
    layout, facts = table.layout, [f"encoding {table.text.encoding}"]
    facts.append("columns divided by spaces" if table.is_spaced else f"delimiter {quoted(layout.delimiter)}")
    if table.decimal == ",":
        facts.append('decimal ","')
    if table.thousands:
        facts.append(f"thousands {quoted(table.thousands)}")
    if layout.skipped_lines:
        facts.append(
            f"{plural(layout.skipped_lines, 'line')} before the {'header' if layout.header else 'rows'}"
        )
    if layout.header is None:
        facts.append("no header, so columns are numbered from 0")
    if layout.unit_lines:
        facts.append("a row of units below the header")
    return facts


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
        frame = _read_leniently(table, nrows=sampled + 1)
        if not _corrected(table, frame):
            break
    return _frame_profile(table, frame, sampled)


def _frame_profile(table: Table, frame: Any, sampled: int) -> Json:
    is_sample = len(frame) > sampled or not table.source.is_complete
    frame = frame.iloc[:sampled]
    rows = plural(len(frame), "row")
    notes = []
    if is_sample and (total := table.source.count_lines()) > len(frame):
        rows = f"about {total - table.layout.skipped_lines - (table.layout.header is not None):,} rows"
        notes.append(f"types and ranges are those of the first {len(frame):,} rows")
    return {
        "format": "CSV" if table.layout.delimiter != "\t" else "tab-separated text",
        "facts": [rows, plural(len(frame.columns), "column")],
        "read": ["import pandas as pd", *_lines(table)],
        "columns": describe_frame(frame),
        "column_count": len(frame.columns),
        "notes": notes,
    }


def _frame_arguments(table: Table) -> dict[str, str]:
    """Return the arguments that say where the table is; those about columns come later."""
    layout, arguments = table.layout, dict[str, str]()
    if table.is_spaced:
        arguments["sep"] = r'r"\s+"'
    elif layout.delimiter != ",":
        arguments["sep"] = quoted(layout.delimiter)
    if table.text.encoding not in ("utf-8", "utf-8-sig"):
        arguments["encoding"] = quoted(table.text.encoding)
    if table.text.errors != "strict":
        arguments["encoding_errors"] = quoted(table.text.errors)
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
        table.notes.append(LONG_ROWS)
    if layout.footer and layout.is_complete:
        arguments["nrows"] = str(len(layout.rows) + layout.blank_lines)
    if layout.other_tables:
        lines = ", ".join(map(str, layout.other_tables))
        table.notes.append(f"the file has other tables, which this leaves out: line {lines}")
    elif not all(map(attrgetter("is_blank"), layout.footer)):
        what = "a row of totals" if layout.total else "a remark"
        table.notes.append(f"the table ends with {what}, which this leaves out")
    return arguments


def _lines(table: Table) -> list[str]:
    arguments = map("=".join, table.arguments.items())
    call = f"pd.read_csv({', '.join([literal(table.source.name), *arguments])})"
    if table.layout.blank_lines:
        call += '.dropna(how="all")'
    lines = with_conversions(call, table.conversions)
    names = list(map(attrgetter("name"), table.columns))
    if names != list(map(str.strip, names)):
        lines[-1:] = [f"{lines[-1]}.rename(columns=str.strip)"] if len(lines) == 1 else [lines[-1], STRIP]
    return lines


def _read(table: Table, *, nrows: int) -> Any:
    """Run the lines; of the file at most so many rows."""
    import pandas as pd

    arguments = dict(table.arguments)
    limit = min(nrows, int(arguments.get("nrows", nrows)))
    arguments["nrows"] = str(limit)
    shortened = replace(table, arguments=arguments)
    if not nrows:
        for name in ("dtype", "na_values", "parse_dates", "date_format"):
            arguments.pop(name, None)
        shortened.conversions = {}
    names: dict[str, Any] = {"pd": pd}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec("\n".join(_lines(shortened)), names)
    return names["df"]


def _read_leniently(table: Table, *, nrows: int) -> Any:
    """Run the lines; once more without rows that are too long, if these are below those that were looked at."""
    try:
        return _read(table, nrows=nrows)
    except ValueError:
        if "on_bad_lines" in table.arguments or table.layout.is_complete:
            raise
    table.arguments["on_bad_lines"] = '"skip"'
    add_note(table, LONG_ROWS)
    return _read(table, nrows=nrows)


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
    table.conversions = {}
    table.decimal, table.thousands = separators(table)
    if table.decimal != ".":
        table.arguments["decimal"] = quoted(table.decimal)
    if table.thousands:
        table.arguments["thousands"] = quoted(table.thousands)
    texts = [column for column in table.columns if _is_read_as_text(table, column)]
    if texts:
        table.arguments["dtype"] = _type_argument(table, texts)
    _add_dates(table)
    _add_missing(table)
    for column in table.columns:
        if units := " and ".join(column.mixed_units):
            add_note(table, f"{column.key} has values in {units}, so it stays text: convert them to one unit")
        if column.kind == "number" and column.number and not is_read_as_number(table, column):
            table.conversions[column.key] = conversion(column, column.number.resolved(table.decimal))
            _add_number_notes(table, column)
    table.conversions = dict(itertools.islice(table.conversions.items(), MAX_SPECIAL_COLUMNS))


def _add_number_notes(table: Table, column: Column) -> None:
    if column.number is not None and column.number.units:
        add_note(table, f"{column.key} is in {' or '.join(column.number.units)}")
    if column.errors:
        add_note(table, f"texts in {column.key} that are no numbers become missing")


def _type_argument(table: Table, texts: list[Column]) -> str:
    """Return the types of columns that stay text; of all if that is shorter, which is right if all are."""
    if len(texts) == len(table.columns) and len(texts) > 1:
        return "str"
    return mapping(dict.fromkeys(map(attrgetter("key"), texts[: 2 * MAX_SPECIAL_COLUMNS]), "str"))


def _is_read_as_text(table: Table, column: Column) -> bool:
    if column.kind == "number":
        return not is_read_as_number(table, column)
    if column.kind == "date":
        return column.date is not None and column.date.has_zones
    return column.kind == "identifier" or column.may_be_numbers


def _add_dates(table: Table) -> None:
    dates = [(column.key, column.date) for column in table.columns if column.date]
    first_fields = {date.format[:2] for _, date in dates if not date.is_ambiguous}
    is_month_first = "%m" in first_fields or not ("%d" in first_fields or table.decimal == ",")
    formats = {}
    for key, date in dates[:MAX_SPECIAL_COLUMNS]:
        if date.is_ambiguous:
            date = date.with_month_first() if is_month_first else date
            order = "day first" if date.format.startswith("%d") else "month first"
            add_note(table, f"dates of {key} are read {order}, which they do not prove")
        if date.has_zones:
            table.conversions[key] = f"pd.to_datetime(df[{key}], utc=True)"
        else:
            formats[key] = quoted(date.format)
    if formats:
        table.arguments["parse_dates"] = f"[{', '.join(formats)}]"
        distinct = set(formats.values())
        value = distinct.pop() if len(distinct) == 1 else mapping(formats)
        if value != '"ISO8601"':
            table.arguments["date_format"] = value


def _add_missing(table: Table) -> None:
    marks, other_kinds = dict[str, tuple[str, ...]](), set[str]()
    for column in table.columns:
        if column.missing and not _is_read_as_text(table, column):
            marks[column.key] = column.missing
        else:
            other_kinds.add(column.kind)
    if marks and other_kinds.isdisjoint({"text", "identifier"}):
        table.arguments["na_values"] = _list(sorted(set[str]().union(*marks.values())))
    elif marks:
        lists = dict(zip(marks, map(_list, marks.values()), strict=True))
        table.arguments["na_values"] = mapping(dict(itertools.islice(lists.items(), MAX_SPECIAL_COLUMNS)))
    if any(map(attrgetter("has_code_na"), table.columns)):
        table.arguments |= {"keep_default_na": "False"}
        table.arguments.setdefault("na_values", '[""]')


def _list(texts: Iterable[str]) -> str:
    return f"[{', '.join(map(literal, texts))}]"


def _corrected(table: Table, frame: Any) -> bool:
    """Classify columns again that are not read as what they seemed; return whether there are any."""
    found = False
    for index, column in enumerate(table.columns):
        if index >= len(frame.columns) or column.kind not in ("number", "date"):
            continue
        series = frame.iloc[:, index]
        if series.dtype.kind not in "OTSU" and str(series.dtype) not in ("object", "str", "string"):
            continue
        texts = list(map(str, series.dropna().unique()))
        if not texts:
            continue
        again = classify(column.name, _telling(texts, column))
        again.key = column.key
        again.may_be_numbers = True
        if again == column:
            again = Column(column.name, "text", key=column.key, may_be_numbers=True)
        table.columns[index] = again
        found = True
    return found


def _telling(texts: list[str], column: Column) -> list[str]:
    """Return some of a column's texts, among them those that are not what the others are."""
    if len(texts) <= MAX_DISTINCT:
        return texts
    odd = [text for text in texts if classify(column.name, [text]).kind != column.kind]
    return [*texts[:MAX_DISTINCT], *odd[:MAX_DISTINCT]]
