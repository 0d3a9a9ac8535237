"""Values of programs as JSON data: what means the same becomes the same, and what would be lost is an error."""

from __future__ import annotations

import datetime
import decimal
import itertools
import json
import math
from collections.abc import Iterable, Mapping, Set
from typing import Any

from pydantic import TypeAdapter

from code_chains.state import numbers_rows, with_index_as_column

MAX_INPUT_CHARS, MAX_ITEMS = 60, 1_000_000
_MAX_COLUMNS = 10_000
_MAX_SPARSE_CELLS, _MAX_SPARSITY = 100_000, 10
"""Cells of a frame of records that have other keys, and how many more than it has values."""


class AnswerTypeError(ValueError):
    """A value does not have the type; the message names the path of each part that differs."""


def to_json_data(value: Any) -> Any:
    """Return a value as JSON data; decimals, dates and times stay as they are until it is written."""
    if isinstance(value, float | decimal.Decimal):
        return None if _is_missing(value) else value
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, list | tuple):
        return list(map(to_json_data, value))
    if isinstance(value, Mapping):
        return _object(value)
    if isinstance(value, bytes):
        return _decoded(value)
    if type(value).__module__.partition(".")[0] in ("pandas", "numpy"):
        return _of_library(value)
    if isinstance(value, range):  # Many short ones in a list could stand for any number of items.
        raise AnswerTypeError(f"expected a list, got {shortened_repr(value)}")
    if isinstance(value, Iterable):
        return list(map(to_json_data, value))
    return value


def _is_missing(number: float | decimal.Decimal) -> bool:
    return not number.is_finite() if isinstance(number, decimal.Decimal) else math.isnan(number)


def _of_library(value: Any) -> Any:
    kind = type(value).__name__
    if kind == "DataFrame":
        table = with_index_as_column(value)
        if not table.columns.is_unique:
            raise AnswerTypeError("two columns of a table have the same name")
        return list(map(to_json_data, table.to_dict("records")))
    if kind in ("NaTType", "NAType"):
        return None
    if kind in ("Timestamp", "Timedelta"):
        if value.nanoseconds if kind == "Timedelta" else value.nanosecond:
            raise AnswerTypeError(f"expected whole microseconds, got {shortened_repr(value)}")
        return value.to_pytimedelta() if kind == "Timedelta" else value.to_pydatetime()
    if kind in ("Period", "Interval"):
        return str(value)
    if value.dtype.kind in "mM" and kind in ("ndarray", "datetime64", "timedelta64"):
        value = _in_microseconds(value)
    return to_json_data(value.tolist())


def _in_microseconds(array: Any) -> Any:
    """Return moments or durations of NumPy in the unit that Python has, as others become numbers."""
    exact = array.astype(f"{array.dtype.kind}8[us]")
    if not ((exact == array) | (array != array)).all():
        raise AnswerTypeError(f"expected whole microseconds, got {shortened_repr(array)}")
    return exact


def as_dict(value: Any) -> Any:
    """Return a series as a dict by its index, a frame as a dict of its columns, and a named tuple by its fields."""
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        return value._asdict()
    if type(value).__module__.partition(".")[0] != "pandas" or not hasattr(value, "index"):
        return value
    keys = value.index if value.ndim == 1 else value.columns
    if not keys.is_unique:
        raise AnswerTypeError("two keys of a table are the same")
    return value.to_dict() if value.ndim == 1 else value.to_dict("list")


def has_labels(value: Any) -> bool:
    """Return whether a value is a series with labels, or a dict or list that holds one."""
    parts = value.values() if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return _is_labelled(value) or any(map(_is_labelled, parts))


def _is_labelled(value: Any) -> bool:
    is_series = type(value).__name__ == "Series" and type(value).__module__.partition(".")[0] == "pandas"
    return is_series and not numbers_rows(value)


def with_labels(value: Any) -> Any:
    """Return a value with its series as dicts by their labels; those of several levels as rows."""
    if _is_labelled(value):
        is_flat = value.index.nlevels == 1
        return as_dict(value) if is_flat else value.to_frame("value" if value.name is None else value.name)
    if isinstance(value, dict):
        return {key: with_labels(item) if _is_labelled(item) else item for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [with_labels(item) if _is_labelled(item) else item for item in value]
    return value


def as_list(value: Any) -> Any:
    """Return a range as a list, unless it stands for too many numbers; any other value as it is."""
    if isinstance(value, range) and len(value) <= MAX_ITEMS:
        return list(value)
    return value


def _object(value: Mapping[Any, Any]) -> dict[str, Any]:
    data = {_key(key): to_json_data(item) for key, item in value.items()}
    if len(data) != len(value):
        raise AnswerTypeError("two keys of a dict are the same as text")
    return data


def _key(key: Any) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return str(key).lower()
    if isinstance(key, Mapping | Set | tuple | bytes):
        raise AnswerTypeError(
            f"expected text, a number or a date as the key of a dict, got {shortened_repr(key)}"
        )
    return _text(to_json_data(key))


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise AnswerTypeError(f"expected bytes of UTF-8, got {shortened_repr(data)}") from None


def _text(value: Any) -> str:
    """Return what JSON has no word for as text."""
    if isinstance(value, complex):
        return str(value).strip("()")
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        text: str = json.loads(TypeAdapter(datetime.timedelta).dump_json(value))
        return text
    return str(value)


def to_json_text(data: Any) -> str:
    """Return JSON data as text; raise `AnswerTypeError` for numbers that JSON cannot write."""
    try:
        return json.dumps(data, default=_text, allow_nan=False)
    except ValueError as error:  # Or an integer of more than 4300 digits.
        raise AnswerTypeError(
            f"expected finite numbers, and integers of at most 4300 digits ({error})"
        ) from None


def as_frame(value: Any) -> Any:
    """Return a frame, or what is one in another form: a series, a list of records, a dict of columns."""
    import pandas

    columns = len(value.columns) if isinstance(value, pandas.DataFrame) else 0
    if max(columns, len(value) if isinstance(value, dict) else 0) > _MAX_COLUMNS:
        raise AnswerTypeError(f"expected a pandas DataFrame of at most {_MAX_COLUMNS:,} columns")
    if isinstance(value, pandas.DataFrame):
        return value
    if isinstance(value, pandas.Series):
        return value.to_frame()
    is_records = isinstance(value, list) and all(isinstance(record, dict) for record in value)
    is_columns = (
        isinstance(value, dict) and bool(value) and all(isinstance(column, list) for column in value.values())
    )
    if not (is_records or is_columns):
        raise AnswerTypeError(f"expected a pandas DataFrame, got {shortened_repr(value)}")
    if is_records:
        # Invariant: rows are counted with all columns first, as a record with keys of its own adds a column to each row.
        cells = len(value) * len(set(itertools.chain.from_iterable(value)))
        if cells > max(_MAX_SPARSE_CELLS, _MAX_SPARSITY * sum(map(len, value))):
            raise AnswerTypeError("expected a pandas DataFrame, got records of which each has other keys")
    try:
        return pandas.DataFrame(value)
    except ValueError as error:
        raise AnswerTypeError(
            f"expected a pandas DataFrame, got columns of different lengths ({error})"
        ) from None


def shortened_repr(value: Any) -> str:
    """Return the `repr` of a value of a program, shortened."""
    try:
        text = "None (or NaN)" if value is None else repr(value)
    except ValueError:  # An integer of more than 4300 digits.
        text = type(value).__name__
    return text if len(text) <= MAX_INPUT_CHARS else f"{text[:MAX_INPUT_CHARS]}…"
