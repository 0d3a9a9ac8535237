"""Arguments of tools as JSON, as the application gets them: dates as text, rows of tables as dicts."""

from __future__ import annotations

import collections
import dataclasses
import enum
import os
import re
from collections.abc import Callable, Iterable
from typing import Any

from . import plain_data, serialization
from .refusals import UnpackableError, article, place_in, type_name
from .wire import Json

MAX_DEPTH, MAX_ITEMS = 50, 1_000_000


def argument(tool: str, name: str, value: Any, kind: str) -> Any:
    """Return an argument as JSON.

    Raises:
        TypeError: It cannot be passed to a tool; the message names its part, and that part's type.
    """
    try:
        return plain(value, kind)
    except UnpackableError as error:
        remedy = "Convert it to numbers, text, lists or dicts."
        raise TypeError(
            f"{tool} cannot be called with this argument: {error.about(name)}. {remedy}"
        ) from None


def plain(value: Any, kind: str = "", within: tuple[int, ...] = ()) -> Any:
    """Return an argument as JSON: dates as ISO text, rows of tables as dicts, and missing numbers as null.

    Args:
        value: The argument, or a part of it.
        kind: The type that the tool asks for, in the notation of Python; empty if that is not known.
        within: Ids of what contains it.

    Raises:
        UnpackableError: It cannot be passed to a tool.
    """
    if value is None or type(value) in (bool, int, str):
        return value
    if isinstance(value, float):
        return finite(value)
    try:
        check_size(value, within)
        return plain_part(value, kind, (*within, id(value)))
    except UnpackableError as error:
        if error.part is not value:
            error.place, error.part = place_in(value, error.part) + error.place, value
        raise


def plain_part(value: Any, kind: str, within: tuple[int, ...]) -> Any:
    if isinstance(value, dict):
        return with_keys(value, ((key, plain(item, "", within)) for key, item in value.items()))
    if isinstance(value, list | tuple | set | frozenset | range | collections.deque):
        return [plain(item, "", within) for item in value]
    if isinstance(value, bytes | bytearray):
        return text_of(value)
    if isinstance(value, enum.Enum):
        return plain(value.value, "", within)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        fields = dataclasses.fields(value)
        return {field.name: plain(getattr(value, field.name), "", within) for field in fields}
    return plain_object(value, kind, within)


def check_size(value: Any, within: tuple[int, ...]) -> None:
    """Raise for what takes too long to go through."""
    if len(within) > MAX_DEPTH or id(value) in within:
        reason = "contains itself" if id(value) in within else f"is nested more than {MAX_DEPTH} levels deep"
        raise UnpackableError(value, reason)
    if serialization.size_of(value) > MAX_ITEMS:
        raise UnpackableError(value, f"is {article(type_name(value))} of more than {MAX_ITEMS:,} items")


def is_of(value: Any, *libraries: str) -> bool:
    return type(value).__module__.partition(".")[0] in libraries


def finite(number: float) -> float | None:
    if number in (float("inf"), float("-inf")):
        raise UnpackableError(number, "is infinite, which JSON cannot say; pass None, or text")
    return float(number) if number == number else None  # NaN is not JSON.


def text_of(data: bytes | bytearray) -> str:
    try:
        return bytes(data).decode()
    except UnicodeDecodeError:
        raise UnpackableError(data, "is bytes that are not UTF-8; convert them, e.g. to base64") from None


def with_keys(whole: Any, pairs: Iterable[tuple[Any, Any]]) -> Json:
    """Return pairs as a dict with text as keys; raise if two of them are the same."""
    found: Json = {}
    for key, item in pairs:
        name = key_of(whole, key)
        if name in found:
            raise UnpackableError(
                whole, f"has two columns or keys that are {name!r} as text; rename one of them"
            )
        found[name] = item
    return found


def rows_of(table: Any, within: tuple[int, ...]) -> list[Json]:
    """Return the rows of a frame of pandas as dicts, with its index unless that only numbers them."""
    if not numbers_rows(table):
        table = table.reset_index(allow_duplicates=True)
    labels = list(table.columns)
    cells = table.astype(object).itertuples(index=False, name=None)
    return [
        with_keys(table, zip(labels, (plain(cell, "", within) for cell in row), strict=True)) for row in cells
    ]


def numbers_rows(table: Any) -> bool:
    """Return whether the index of a table says nothing but the numbers of its rows."""
    index = table.index
    is_unnamed = index.inferred_type in ("integer", "empty") and list(index.names) == [None]
    return is_unnamed and list(index) == list(range(len(table)))


def cells_of(series: Any, kind: str, within: tuple[int, ...]) -> Any:
    """Return a series of pandas as a dict by its labels; as a list where it has none, or where the tool wants cells."""
    if LIST_OF_CELLS.match(kind) or (numbers_rows(series) and not kind.startswith("dict")):
        return [plain(cell, "", within) for cell in series.tolist()]
    if series.index.nlevels > 1 or kind.startswith("list"):
        return rows_of(series.to_frame("value" if series.name is None else series.name), within)
    return with_keys(
        series,
        ((label, plain(cell, "", within)) for label, cell in zip(series.index, series.tolist(), strict=True)),
    )


LIST_OF_CELLS = re.compile(r"list\[(int|float|str|bool|date|datetime|time|None| \| )+\]")
CONVERTERS: tuple[tuple[str, Callable[[Any], Any]], ...] = (
    ("model_dump", lambda value: value.model_dump()),
    ("isoformat", lambda value: None if value != value else value.isoformat()),
    ("to_dicts", lambda value: value.to_dicts()),
    ("tolist", lambda value: value.tolist()),
    ("to_list", lambda value: value.to_list()),
    ("to_pylist", plain_data.rows_of_arrow),
    ("item", lambda value: value.item()),
)
"""How objects become plain, by a method that they have: models, dates, frames, arrays and their scalars."""


def plain_object(value: Any, kind: str, within: tuple[int, ...]) -> Any:
    name = type(value).__name__
    if is_of(value, "pandas", "numpy"):
        value = plain_of_library(value, kind, within)
        return plain(value, "", within) if name != "DataFrame" else value
    if is_of(value, "sqlite3") and name == "Row":
        return with_keys(value, zip(value.keys(), plain(tuple(value), "", within), strict=True))
    for method, convert in CONVERTERS:
        if hasattr(type(value), method):
            return plain(convert(value), "", within)
    if isinstance(value, int | str):  # A subclass of these.
        return int(value) if isinstance(value, int) else str.__str__(value)
    if isinstance(value, os.PathLike) or name in ("Decimal", "UUID"):
        return str(value)
    raise UnpackableError(value)


def plain_of_library(value: Any, kind: str, within: tuple[int, ...]) -> Any:
    """Return a value of NumPy or pandas as lists, dicts, numbers and text."""
    name = type(value).__name__
    if name == "DataFrame":
        return rows_of(value, within)
    if name == "Series":
        return cells_of(value, kind, within)
    if name in ("NaTType", "NAType"):
        return None
    if name in ("Period", "Interval"):
        return str(value)
    if hasattr(value, "isoformat"):
        return value.isoformat()
    if name in ("ndarray", "datetime64") and value.dtype.kind == "M":
        moments = value.astype(str).tolist()
        return None if moments == "NaT" else moments if value.ndim == 0 else without_nat(moments)
    if hasattr(value, "tolist") and not (name in ("ndarray", "timedelta64") and value.dtype.kind == "m"):
        return value.tolist()
    if name.lower().endswith("dtype"):
        return str(value)
    raise UnpackableError(value)


def without_nat(moments: list[Any]) -> list[Any]:
    """Return texts of moments with None for those that are missing."""
    return [
        without_nat(moment) if isinstance(moment, list) else None if moment == "NaT" else moment
        for moment in moments
    ]


def key_of(whole: Any, key: Any) -> str:
    """Return a key as text: what JSON has as a key."""
    if isinstance(key, tuple | frozenset | bytes):
        raise UnpackableError(whole, f"has the key or label {key!r}; make it one text, e.g. with '_'.join")
    if isinstance(key, int | float) and not isinstance(key, enum.Enum):
        return str(key)
    return str(plain(key))
