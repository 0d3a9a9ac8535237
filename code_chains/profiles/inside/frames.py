"""Columns of a frame of pandas, or of rows, in a few words."""

from __future__ import annotations

import itertools
import math
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

Json = dict[str, Any]

MAX_COLUMNS = 40
"""Columns that are described one by one."""
MAX_CATEGORIES, MAX_CATEGORY_CHARS, MAX_EXAMPLE_CHARS = 10, 30, 40
MAX_CELL_CHARS, MAX_ROW_CHARS = 60, 300
MAX_DISTINCT_ROWS = 50_000
"""Rows of which distinct values are counted."""


def run_lines(lines: Iterable[str], **names: Any) -> Any:
    """Return the frame that lines of pandas make."""
    import pandas as pd

    names["pd"] = pd
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        exec("\n".join(lines), names)
    return names["df"]


def describe_frame(frame: Any) -> list[Json]:
    """Describe the first columns of a frame: name, type, missing values and range."""
    return [_describe_series(name, series) for name, series in itertools.islice(frame.items(), MAX_COLUMNS)]


def _describe_series(name: object, series: Any) -> Json:
    missing = int(series.isna().sum())
    kind, detail = _kind_and_detail(series, series.dropna())
    return {"name": str(name)[:200], "type": kind, "detail": detail, "missing": missing}


def _kind_and_detail(series: Any, values: Any) -> tuple[str, str]:
    code = getattr(series.dtype, "kind", "O")
    if not len(values):
        return "empty", ""
    if code == "b":
        return "bool", ""
    if code in "iuf":
        lowest, highest = values.min().item(), values.max().item()
        return ("float" if code == "f" else "int"), f"{_number(lowest)} to {_number(highest)}"
    if code == "M":
        return _dates(values)
    if code == "m":
        return "timedelta", f"{values.min()} to {values.max()}"
    return _objects(values.head(MAX_DISTINCT_ROWS).tolist())


def _dates(values: Any) -> tuple[str, str]:
    lowest, highest = values.min(), values.max()
    is_date = values.dt.tz is None and bool((values == values.dt.normalize()).all())
    if is_date:
        return "date", f"{lowest:%Y-%m-%d} to {highest:%Y-%m-%d}"
    return "datetime", f"{lowest.isoformat(sep=' ')} to {highest.isoformat(sep=' ')}"


def _number(value: float) -> str:
    """Return a number as a program would write it, without separators and with few digits."""
    if isinstance(value, int):
        return str(value)
    return f"{value:.2f}" if 1e4 <= abs(value) < 1e15 else f"{value:.6g}"


def describe_rows(rows: Sequence[Mapping[Any, Any]]) -> list[Json]:
    """Describe the keys of records, such as those of JSON."""
    columns, names = [], dict.fromkeys(itertools.chain.from_iterable(rows))
    for name in itertools.islice(names, MAX_COLUMNS):
        values = [row.get(name) for row in rows]
        columns.append(describe_column(str(name), values))
    return columns


def describe_lists(names: Sequence[str], rows: Iterable[Iterable[Any]]) -> list[Json]:
    """Describe the columns of rows that are lists; those that are short lack the last ones."""
    return describe_rows([dict(zip(names, row, strict=False)) for row in rows])


def without_none(values: Iterable[Any]) -> list[Any]:
    """Return the values that are there."""
    return [value for value in values if value is not None]


def texts_in(values: Iterable[Any]) -> list[str]:
    """Return the values that are texts."""
    return [value for value in values if isinstance(value, str)]


def describe_column(name: str, values: Sequence[Any]) -> Json:
    """Describe values, of which those that are None are missing."""
    present = without_none(values)
    kind, detail = describe_values(present)
    return {"name": name[:200], "type": kind, "detail": detail, "missing": len(values) - len(present)}


def describe_values(values: Sequence[Any]) -> tuple[str, str]:
    """Return the type of values that are not missing, and their range or categories."""
    kinds = set(map(type, values))
    if not values:
        return "empty", ""
    if kinds == {bool}:
        return "bool", ""
    if kinds <= {int, float}:
        finite = list(filter(math.isfinite, values))
        detail = f"{_number(min(finite))} to {_number(max(finite))}" if finite else ""
        return ("float" if float in kinds else "int"), detail
    return _objects(values)


def _objects(values: Sequence[Any]) -> tuple[str, str]:
    kinds = sorted({kind.__name__ for kind in set(map(type, values))})
    if kinds == ["str"]:
        return _texts(values)
    if set(kinds) <= {"date", "datetime", "Timestamp"}:
        return "datetime" if "datetime" in kinds else "date", f"{min(values)} to {max(values)}"
    if kinds in (["dict"], ["list"], ["ndarray"]):
        return _nested(kinds[0], values)
    if set(kinds) <= {"Decimal", "time", "bytes", "UUID"} and len(kinds) == 1:
        return kinds[0], ""
    return f"mixed: {', '.join(kinds[:5])}", ""


def _nested(kind: str, values: Sequence[Any]) -> tuple[str, str]:
    if kind != "dict":
        return "list", ""
    keys = dict.fromkeys(str(key)[:40] for key in itertools.chain.from_iterable(values[:100]))
    return "dict", f"keys {', '.join([*keys][:10])}"


def _texts(values: Sequence[str]) -> tuple[str, str]:
    distinct = dict.fromkeys(values)
    if len(distinct) <= MAX_CATEGORIES and max(map(len, distinct)) <= MAX_CATEGORY_CHARS:
        return "text", ": " + ", ".join(sorted(distinct))
    example = next(filter(str.strip, distinct), "")
    if len(example) > MAX_EXAMPLE_CHARS:
        example = f"{example[:MAX_EXAMPLE_CHARS]}…"
    return "text", f"{len(distinct)} different, such as {example!r}"


def row_text(row: Iterable[object]) -> str:
    """Return the values of a row in short."""
    return ", ".join(str(value)[:MAX_CELL_CHARS] for value in row)[:MAX_ROW_CHARS]


def plural(count: int, word: str) -> str:
    """Return a count with its noun."""
    return f"{count:,} {word}" if count == 1 else f"{count:,} {word}s"
