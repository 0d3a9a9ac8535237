"""Check what a program reported as its value, for `executors.values`: it may have written anything."""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Callable, Iterator
from typing import Any

from code_chains.executors.guest.serialization import REBUILDERS, SCALARS, ZONE
from code_chains.executors.guest.untrusted import MAX_ITEMS

_DTYPE = re.compile(
    r"bool|u?int\d{1,2}|float\d{1,3}|complex\d{1,3}|(datetime|timedelta)64(\[\w{1,3}\])?|<U([1-9]\d{0,5})|object"
    r"|\|S([1-9]\d{0,5})|[<>][iufc]\d{1,2}"
)
"""Types of arrays; that of text says how much memory each item takes."""
_CELLS_DTYPE = re.compile(
    r"bool|u?int\d{1,2}|float\d{1,2}|complex\d{1,3}|(datetime|timedelta)64\[\w\w?(, [\w+/:-]{1,60})?\]|object|category"
    r"|interval|U?Int\d{1,2}|Float\d\d|boolean|str|string\[(python|pyarrow)\]|period\[[\w-]{1,20}\]|arrow:[\w\[\]]{1,30}"
)
"""Types of columns, indexes and other arrays of pandas."""
_INDEX = re.compile(r"(Range|Multi|Datetime|Timedelta|Period|Interval|Categorical)?Index")
_FREQUENCY = re.compile(r"-?[\w-]{1,20}")
_MAX_CLASSES, _MAX_FIELDS = 100, 1000
"""Classes of named tuples in one value, and fields of one: each takes time to make."""
_KINDS = set(REBUILDERS)
_MAX_TEXT_CHARS = 10_000_000
"""Characters of an array of texts, whose items are all as long as the longest."""
_MAX_COLLIDING = 1000
"""Numbers in a set, or keys, that may have the same hash, so that looking them up takes quadratic time."""
_TEXTS = {
    "fractions.Fraction": re.compile(r"-?\d{1,1000}(/\d{1,1000})?"),
    "decimal.Decimal": re.compile(r"[-+\w.]{1,1000}"),
    "builtins.complex": re.compile(r"[-+\w.()]{1,100}"),
    "builtins.int": re.compile(r"-?[0-9a-f]+"),
}
"""What a program may have written that is costly to read as anything else."""


def check_packed(packed: Any) -> None:
    """Check that reading a packed value takes time and memory in proportion to its length.

    Raises:
        ValueError: It may take more, or the value is none that was packed here.
    """
    _check(packed, set())
    # Invariant: libraries may make a list of a range, as of a label, but not of the value itself.
    if isinstance(packed, list | dict) and sum(map(len, _nested_ranges(packed))) > MAX_ITEMS:
        raise ValueError("ranges of too many items")


def _check(packed: Any, classes: set[str], *, is_hashed: bool = False) -> None:
    """Raise unless reading this takes time and memory in proportion to its length: a program may have written anything."""
    if isinstance(packed, dict):
        _check_packed(packed, classes, is_hashed=is_hashed)
    if not isinstance(packed, list):
        return
    if is_hashed and sum(map(_may_collide, packed)) > _MAX_COLLIDING:
        raise ValueError("too many large numbers in a set or as keys")
    if not SCALARS.issuperset(map(type, packed)):
        for part in packed:
            _check(part, classes, is_hashed=is_hashed)


def _check_packed(packed: dict[str, Any], classes: set[str], *, is_hashed: bool) -> None:
    if len(packed) != 1 or not _KINDS.issuperset(packed):
        raise ValueError("it is no packed value")
    ((kind, content),) = packed.items()
    if kind in _TEXTS and not _TEXTS[kind].fullmatch(content):
        raise ValueError(f"it is no {kind}")
    if kind == "namedtuple":
        classes.add(str(content[:2]))
        if len(classes) > _MAX_CLASSES or len(content[1]) > _MAX_FIELDS:
            raise ValueError("too many classes of named tuples")
    if check := _CHECKS.get(kind):
        check(*([content] if isinstance(content, str) else content))
    if kind in _MAPPINGS:
        _check(content[::2], classes, is_hashed=True)
        content = content[1::2]
    _check(content, classes, is_hashed=is_hashed or kind in _HASHED)


def _may_collide(value: Any) -> bool:
    """Return whether a key may have the hash of others: that of small numbers is their own, that of dates is random."""
    if isinstance(value, dict):
        return "datetime.date" not in value
    return isinstance(value, int | float) and abs(value) >= sys.hash_info.modulus


def _check_array(items: Any, dtype: str, shape: Any) -> None:
    match = _DTYPE.fullmatch(dtype)
    if match is None or not isinstance(items, list) or not (dtype == "object" or all(map(_is_cell, items))):
        raise ValueError(f"an array of {dtype[:20]!r}")
    if int(match[3] or match[4] or 0) * len(items) > _MAX_TEXT_CHARS:
        raise ValueError("an array of too much text")
    if not isinstance(shape, list) or math.prod(shape) != len(items):
        raise ValueError("an array of another shape")


def _cells(content: Any) -> int:
    """Return how many cells an array of pandas has; raise if what a program says of it is wrong."""
    name, cells, *more = content
    if not _CELLS_DTYPE.fullmatch(name) or not isinstance(cells, list):
        raise ValueError(f"cells of the type {str(name)[:20]!r}")
    if name == "interval":
        if _cells(cells) != _cells(more[0]):
            raise ValueError("intervals without ends")
        return _cells(cells)
    if name == "category":
        _cells(more[0])
        _check(more[0], set(), is_hashed=True)
    if name != "object" and not all(map(_is_cell, cells)):
        raise ValueError(f"cells that are no {name}")
    return len(cells)


def _rows(kind: Any, cells: Any, *names: Any) -> int:
    """Return how many labels an index has; raise if what a program says of it is wrong."""
    if not _INDEX.fullmatch(kind):
        raise ValueError("an index of no kind")
    if kind == "RangeIndex":
        if len(range(*cells)) > MAX_ITEMS:
            raise ValueError("an index of too many labels")
        return len(range(*cells))
    if kind == "MultiIndex":
        lengths = set(map(_cells, cells))
        _check(cells, set(), is_hashed=True)
        if len(lengths) != 1:
            raise ValueError("an index of two lengths")
        return lengths.pop()
    if names[1] is not None and not _FREQUENCY.fullmatch(names[1]):
        raise ValueError("an index with another frequency")
    return _cells(cells)


def _check_series(index: Any, name: Any, column: Any, *notes: Any) -> None:
    if _rows(*index) != _cells(column):
        raise ValueError("a series of two lengths")


def _check_frame(index: Any, labels: Any, columns: Any, *notes: Any) -> None:
    if _rows(*labels) != len(columns) or {_rows(*index), *map(_cells, columns)} != {_rows(*index)}:
        raise ValueError("a frame of two sizes")


def _check_moment(*content: Any) -> None:
    """Raise unless this is the text of a moment, or that with a time zone or the name of one."""
    if len(content) == 3 and not ZONE.fullmatch(content[1]):
        raise ValueError("an unknown time zone")


def _check_instant(number: Any, unit: Any, zone: Any) -> None:
    if not isinstance(number, int) or unit not in ("s", "ms", "us", "ns"):
        raise ValueError("an instant without a unit")
    if zone is not None and not ZONE.fullmatch(zone):
        raise ValueError("an unknown time zone")


def _check_period(ordinal: Any, frequency: Any) -> None:
    if not isinstance(ordinal, int) or not _FREQUENCY.fullmatch(frequency):
        raise ValueError("a period without a frequency")


def _is_cell(packed: Any) -> bool:
    """Return whether an array may hold this, a scalar: NumPy expands anything else."""
    return type(packed) in SCALARS or (isinstance(packed, dict) and _CELLS.issuperset(packed))


def _nested_ranges(packed: Any) -> Iterator[range]:
    """Yield the ranges within a value, but not one that is the value."""
    for part in packed.values() if isinstance(packed, dict) else packed:
        if isinstance(part, dict) and "builtins.range" in part:
            yield range(*part["builtins.range"])
        elif isinstance(part, list | dict):
            yield from _nested_ranges(part)


_CELLS = {
    "builtins.int",
    "builtins.bytes",
    "builtins.complex",
    "datetime.date",
    "datetime.time",
    "decimal.Decimal",
} | {
    "datetime.datetime",
    "datetime.timedelta",
    "pandas.Timestamp",
    "pandas.Timedelta",
    "pandas.NaTType",
}
"""Kinds of scalars in an array, besides those that JSON has."""
_MAPPINGS = {"builtins.dict", "collections.Counter", "collections.OrderedDict"}
"""Kinds whose content is keys and values by turns."""
_HASHED = {
    "builtins.set",
    "builtins.frozenset",
    "builtins.dict_keys",
    "builtins.dict_values",
    "builtins.dict_items",
}
_CHECKS: dict[str, Callable[..., object]] = {
    "numpy.ndarray": _check_array,
    **dict.fromkeys(["numpy.datetime64", "numpy.timedelta64"], _check_array),
    **dict.fromkeys(["datetime.datetime", "datetime.time"], _check_moment),
    **dict.fromkeys(["pandas.Timestamp", "pandas.Timedelta"], _check_instant),
    "pandas.Period": _check_period,
    "pandas.Index": _rows,
    "pandas.array": lambda *content: _cells(content),
    "pandas.Series": _check_series,
    "pandas.DataFrame": _check_frame,
}
