"""Variables of a question, validated."""

from __future__ import annotations

import datetime
import decimal
import json
import keyword
from collections.abc import Callable, Mapping, Sequence
from importlib.util import find_spec
from typing import Any

from pydantic import JsonValue

from code_chains.errors import InputError

VARIABLES_REMEDY = 'variables must be a mapping, e.g. {"n": 3}.'
_SCALARS = {str, int, float, bool, type(None)}
_EXACT: dict[type, Callable[[Any], Any]] = {
    # Moments first, as they are dates.
    datetime.datetime: lambda value: datetime.datetime.fromisoformat(value.isoformat()),
    datetime.date: lambda value: datetime.date.fromisoformat(value.isoformat()),
    datetime.time: lambda value: datetime.time.fromisoformat(value.isoformat()),
    datetime.timedelta: lambda value: datetime.timedelta(value.days, value.seconds, value.microseconds),
    decimal.Decimal: decimal.Decimal,
    complex: complex,
}
"""Other scalars, and what makes them of their subclasses."""
_TABLES = {
    ("numpy", "ndarray"): "numpy",
    ("pandas", "DataFrame"): "pandas",
    ("pandas", "Series"): "pandas_series",
    ("polars", "DataFrame"): "polars",
    ("polars", "Series"): "polars_series",
    ("pyarrow", "Table"): "pyarrow",
}
"""Arrays, frames and series by library and class."""


def check_variables(variables: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return variables whose names are identifiers and whose values are JSON, arrays or frames.

    Raises:
        InputError: One is invalid; the message names it.
    """
    if not isinstance(variables or {}, Mapping):
        raise InputError(VARIABLES_REMEDY)
    return {_check_variable(name): _check_value(name, value) for name, value in (variables or {}).items()}


def _check_variable(name: object) -> str:
    if (
        not isinstance(name, str)
        or not name.isidentifier()
        or keyword.iskeyword(name)
        or name.startswith("__")
    ):
        raise InputError(f"A variable cannot be called {name!r}: give it the name of a Python variable.")
    return name


def _check_value(name: str, value: Any) -> Any:
    if kind := table_kind(value):
        if kind != "numpy":
            _check_frame(name, value.to_frame() if kind == "pandas_series" else value)
        return value
    try:
        return plain_value(value)
    except (TypeError, ValueError, OverflowError, RecursionError) as error:
        raise InputError(
            f"The variable {name!r} cannot be passed ({error}). Pass numbers, text, dates, bytes, lists, dicts, sets, NumPy"
            " arrays, pandas or polars frames and series, or a file."
        ) from error


def plain_value(value: Any) -> Any:
    """Return a value as the program will see it: Python's own types for their subclasses and NumPy's, lists for tuples."""
    if type(value) in _SCALARS:
        return value
    if isinstance(value, Mapping):
        return {_plain_key(key): plain_value(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return list(value) if _is_flat(value) else list(map(plain_value, value))
    if isinstance(value, set | frozenset):
        return (set if isinstance(value, set) else frozenset)(map(_plain_key, value))
    if isinstance(value, bytes | bytearray | memoryview):
        return bytes(value)
    return _plain_scalar(value)


def _plain_scalar(value: Any) -> Any:
    if getattr(value, "shape", None) == () and type(value).__module__ == "numpy":
        kind = value.dtype.kind  # Python knows no nanoseconds, and NumPy gives a number for them.
        value = (
            value.astype(f"{kind}8[us]") if kind in "mM" and value.dtype.str.endswith("[ns]") else value
        ).item()
    if hasattr(type(value), "to_pydatetime"):  # A Timestamp of pandas.
        value = None if value != value else value.to_pydatetime(warn=False)
    if value is None:
        return None
    if _has_rules(value):
        raise TypeError("a time zone with rules of its own; convert it, e.g. with .astimezone(timezone.utc)")
    for kind, exact in _EXACT.items():
        if isinstance(value, kind):
            return value if type(value) is kind else exact(value)
    if isinstance(value, str | int | float):
        return json.loads(json.dumps(value))
    raise TypeError(f"{type(value).__name__} is not known")


def _has_rules(value: Any) -> bool:
    """Return whether a moment has a time zone that is more than an offset, which alone can be passed."""
    zone = getattr(value, "tzinfo", None)
    return zone is not None and not isinstance(zone, datetime.timezone) and str(zone) != "UTC"


def _plain_key(key: Any) -> Any:
    """Return a key of a dict or an item of a set, which may be a tuple."""
    return tuple(map(_plain_key, key)) if isinstance(key, tuple) else plain_value(key)


def check_json_variables(variables: Mapping[str, Any] | None) -> dict[str, JsonValue]:
    """Return variables for an executor that takes JSON values alone.

    Raises:
        InputError: One is invalid, or no JSON value.
    """
    checked = check_variables(variables)
    for name, value in checked.items():
        if table_kind(value) or not _is_json(value):
            raise InputError(
                f"The variable {name!r} is not a JSON value, and this executor takes nothing else. Pass numbers, text,"
                " lists and dicts with text as keys, or use SandboxExecutor."
            )
    return checked


def _is_flat(items: Sequence[Any]) -> bool:
    """Return whether items are plain scalars, so that long lists need not be looked at one by one."""
    return _SCALARS.issuperset(map(type, items))


def _is_json(value: Any) -> bool:
    if isinstance(value, list):
        return all(map(_is_json, value))
    if isinstance(value, dict):
        return {str}.issuperset(map(type, value)) and all(map(_is_json, value.values()))
    return type(value) in _SCALARS


def _check_frame(name: str, frame: Any) -> None:
    """Raise unless a frame can be passed as Arrow, before a model is paid."""
    if find_spec("pyarrow") is None:
        raise InputError(
            f"The variable {name!r} is a table, which is passed as Arrow. Install it: pip install pyarrow"
        )
    if type(frame).__module__.partition(".")[0] != "pandas":
        return
    for position in columns_for_json(frame):
        column = frame.columns[position]
        try:
            for cell in frame.iloc[:, position]:
                plain_value(cell)
        except (TypeError, ValueError, OverflowError, RecursionError) as error:
            raise InputError(
                f"The column {column!r} of {name!r} holds values that no table can ({error}). Convert it, e.g. with"
                f" {name}[{column!r}].astype(str)."
            ) from error


def columns_for_json(frame: Any) -> list[int]:
    """Return the positions of the columns of a pandas frame that Arrow cannot hold, such as those of several types."""
    import pyarrow

    positions = []
    for position, dtype in enumerate(frame.dtypes):
        try:
            if str(dtype) == "object":
                pyarrow.array(frame.iloc[:, position], from_pandas=True)
        except (pyarrow.ArrowException, OverflowError, ValueError, TypeError):
            positions.append(position)
    return positions


def table_kind(value: object) -> str | None:
    """Return `numpy`, `pandas`, `polars` or `pyarrow` for their arrays and frames, `pandas_series` or `polars_series`.

    Anything else gives None.
    """
    kind = type(value)
    return _TABLES.get((kind.__module__.partition(".")[0], kind.__name__))
