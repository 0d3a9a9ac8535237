"""The plain data that objects of other types consist of: a record as a dict, a table as its rows, a subclass as its base."""

from __future__ import annotations

import collections
import datetime
import enum
import functools
from collections.abc import Callable, Mapping
from typing import Any

from .refusals import UnpackableError

Convert = Callable[[Any], Any]
"""Makes an object plain."""


@functools.lru_cache(1000)
def tuple_class(name: str, *fields: str, rename: bool = False) -> Any:
    return collections.namedtuple(name, fields, rename=rename)


def library_of(kind: type) -> str:
    """Return the name of the library that defines a class."""
    return str(getattr(kind, "__module__", "")).partition(".")[0]


def is_number(value: Any) -> bool:
    """Return whether a value is a scalar of NumPy."""
    kind = type(value)
    return library_of(kind) == "numpy" and any(base.__name__ == "generic" for base in kind.__mro__)


def rows_of_arrow(table: Any) -> Any:
    """Return the rows of a table of Arrow, or the cells of a column."""
    names = getattr(table, "column_names", [])
    if len(set(names)) < len(names):
        raise UnpackableError(table, "has two columns of one name; rename them")
    return table.to_pylist()


METHODS: dict[str, Convert] = {
    "__dataclass_fields__": lambda value: {name: getattr(value, name) for name in value.__dataclass_fields__},
    "model_dump": dict,  # pydantic
    "to_dicts": lambda value: value.to_dicts(),  # polars
    "to_pylist": rows_of_arrow,  # Arrow
    "as_py": lambda value: value.as_py(),
    "__fspath__": str,
    "to_list": lambda value: value.to_list(),
    "tolist": lambda value: value.tolist(),  # arrays of Python
}
"""How objects become plain, by an attribute of their class."""
BASES: dict[Any, Convert] = {
    Mapping: dict,
    list: list,
    tuple: tuple,
    set: set,
    frozenset: frozenset,
    bytes: bytes,
    str: str.__str__,
    int: int.__int__,
    float: float.__float__,
    complex: complex.__complex__,
    # Moments first, as they are dates.
    datetime.datetime: lambda value: datetime.datetime.combine(value.date(), value.timetz()),
    datetime.date: lambda value: datetime.date(value.year, value.month, value.day),
    datetime.timedelta: lambda value: datetime.timedelta(value.days, value.seconds, value.microseconds),
}
"""How values of subclasses become those of the class."""


def _plain_of_library(value: Any, kind: type) -> Any:
    """Return a scalar of NumPy as the number that it is, and a type of columns as its name."""
    if kind.__name__.lower().endswith("dtype"):
        return str(value)
    if is_number(value) and type(item := value.item()) is not kind:
        return item
    raise UnpackableError(value)


def plain(value: Any) -> Any:
    """Return the plain data that an object of another type consists of: a record as a dict, a table as its rows.

    Raises:
        UnpackableError: It consists of none.
    """
    kind = type(value)
    library = library_of(kind)
    if isinstance(value, enum.Enum):
        return value._value_
    if library in ("numpy", "pandas"):
        return _plain_of_library(value, kind)
    if library == "sqlite3" and kind.__name__ == "Row":
        return tuple_class("Row", *value.keys(), rename=True)(*value)
    for method, convert in METHODS.items():
        if hasattr(kind, method):
            return convert(value)
    for base, convert in BASES.items():
        if isinstance(value, base):
            return convert(value)
    raise UnpackableError(value)
