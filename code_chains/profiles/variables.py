"""Tables among the variables of a question, in the same words as files; they are values of this process already."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Mapping
from typing import Any

from code_chains.executors.inputs import table_kind
from code_chains.profiles.inside.frames import describe_column, describe_frame, describe_rows
from code_chains.profiles.inside.traps import find_traps
from code_chains.profiles.report import MAX_FILE_CHARS, MAX_TOTAL_CHARS, MIN_FILE_CHARS, render_profile

MAX_ROWS = 200_000
"""Rows of a frame of pandas that are looked at."""
MAX_VALUES = 20_000
"""Rows of other tables, whose values are looked at one by one."""
MAX_COLUMNS, MAX_CELL_CHARS = 40, 60
NAMES = {
    "pandas": "pandas DataFrame",
    "polars": "polars DataFrame",
    "pyarrow": "Arrow table",
    "pandas_series": "pandas Series",
    "polars_series": "polars Series",
}


def profile_variables(variables: Mapping[str, Any], *, schema_only: bool = False) -> dict[str, str]:
    """Return texts about the variables that are tables, by their names.

    Args:
        variables: Checked values by name.
        schema_only: Whether to leave out rows and values.
    """
    # Invariant: keys of dicts may be values, so of a schema they are no part.
    kinds = NAMES if schema_only else {*NAMES, None}
    tables = {name: each for name, each in variables.items() if is_table(each) and table_kind(each) in kinds}
    max_chars = max(MIN_FILE_CHARS, min(MAX_FILE_CHARS, MAX_TOTAL_CHARS // max(len(tables), 1)))
    texts = {}
    for name, value in tables.items():
        title = f"- variable `{name}`"
        profile = _profile(value)
        text = render_profile(title, profile, schema_only=schema_only, max_chars=max_chars, trusts_names=True)
        if text is not None:
            texts[name] = text
    return texts


def is_table(value: object) -> bool:
    """Return whether a variable is a frame, a series or a list of records."""
    if isinstance(value, list):
        return len(value) > 0 and all(isinstance(row, dict) for row in value[:MAX_VALUES])
    return table_kind(value) in NAMES


def _profile(value: Any) -> dict[str, Any]:
    kind = table_kind(value)
    if kind is None:
        return _profile_records(value)
    count = len(value)
    if kind.endswith("_series"):
        frame = value.to_frame(name=str(value.name or "values"))
        facts = [f"{count:,} values of {value.dtype.__class__.__name__}"]
        return _profile_frame(NAMES[kind], frame, kind.removesuffix("_series"), facts)
    width = value.num_columns if kind == "pyarrow" else value.shape[1]
    return _profile_frame(NAMES[kind], value, kind, [f"{count:,} rows", f"{width:,} columns"])


def _profile_records(rows: list[dict[Any, Any]]) -> dict[str, Any]:
    columns = describe_rows(rows[:MAX_VALUES])
    return {
        "format": "list of dicts",
        "facts": [f"{len(rows):,} items"],
        "columns": columns,
        "first_rows": list(map(_record, rows[:3])),
        "notes": _sample_note(len(rows), MAX_VALUES),
    }


def _record(row: dict[Any, Any]) -> str:
    return ", ".join(f"{str(key)[:MAX_CELL_CHARS]}: {_cell(cell)}" for key, cell in row.items())


def _profile_frame(name: str, frame: Any, kind: str, facts: list[str]) -> dict[str, Any]:
    rows: Iterable[Iterable[object]]
    if kind == "pandas":
        columns, limit, traps = describe_frame(frame.head(MAX_ROWS)), MAX_ROWS, find_traps(frame)
        names, rows = list(frame.columns), frame.head(3).itertuples(index=False, name=None)
    else:
        limit, traps = MAX_VALUES, list[str]()
        names = list(frame.column_names if kind == "pyarrow" else frame.columns)
        shown = names[:MAX_COLUMNS]
        columns = [describe_column(str(name), _values(frame, kind, name, limit)) for name in shown]
        rows = zip(*(_values(frame, kind, name, 3) for name in shown), strict=True)
    return {
        "format": name,
        "facts": facts,
        "columns": columns,
        "column_count": len(names),
        "first_rows": list(map(_row, [names, *rows])),
        "notes": [*traps, *_sample_note(len(frame), limit)],
    }


def _row(values: Iterable[object]) -> str:
    return ", ".join(map(_cell, itertools.islice(values, MAX_COLUMNS)))


def _values(table: Any, kind: str, name: str, count: int) -> list[Any]:
    """Return the first values of a column of polars or Arrow."""
    start = table.slice(0, count)
    return list(start.column(name).to_pylist() if kind == "pyarrow" else start[name].to_list())


def _sample_note(count: int, limit: int) -> list[str]:
    return [f"types and ranges are those of the first {limit:,} rows"] if count > limit else []


def _cell(value: object) -> str:
    text = str(value)
    return text if len(text) <= MAX_CELL_CHARS else f"{text[: MAX_CELL_CHARS - 1]}…"
