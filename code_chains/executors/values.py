"""The host's end of typed values (`guest.serialization`): pack variables; check and unpack what a program reports."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping
from typing import Any, cast

from pydantic import JsonValue

from code_chains.errors import InputError
from code_chains.executors.guest.display import VALUE_TYPE
from code_chains.executors.guest.serialization import REBUILDERS, no_object, pack, unpack
from code_chains.executors.guest.untrusted import MAX_ITEMS, parse
from code_chains.inputs import check_variables, table_kind
from code_chains.state import Execution

__all__ = ["VALUE_TYPE", "pack_value", "pack_variables", "printed_value", "value_of"]

_UNREADABLE = (
    ValueError,
    TypeError,
    AttributeError,
    ArithmeticError,
    ImportError,
    RecursionError,
    LookupError,
    MemoryError,
)
_KINDS = set(REBUILDERS) - {"namedtuple"}
_DTYPE = re.compile(
    r"bool|u?int\d{1,2}|float\d{1,3}|complex\d{1,3}|(datetime|timedelta)64(\[\w{1,3}\])?|<U([1-9]\d{0,5})"
)
"""Types of arrays; that of text says how much memory each item takes."""
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


def value_of(execution: Execution) -> Any:
    """Return the value of the last expression: numbers, text, dates, collections, NumPy arrays, pandas frames and series.

    The run must have been asked for it, as packing costs time: `executor.run(code, return_value=True)`.

    Raises:
        LookupError: There is none, it is too large or holds other objects, or the program forged it. `result` has
            its text.
    """
    for data in execution.display_data:
        if data.media_type == VALUE_TYPE:
            try:
                packed = parse(data.data.encode(errors="replace"))
                _check(packed)
                # Invariant: libraries may make a list of a range, as of a label, but not of the value itself.
                if isinstance(packed, list | dict) and sum(map(len, _nested_ranges(packed))) > MAX_ITEMS:
                    raise ValueError("ranges of too many items")
                return unpack(packed, no_object)
            except _UNREADABLE as error:
                raise LookupError(f"The value of the program cannot be read: {error}") from error
    raise LookupError("The program ended with no value, or with one that is too large or of another type.")


def pack_value(value: Any) -> JsonValue:
    """Return a checked value as JSON, with its exact type."""
    return cast("JsonValue", pack(value, no_object))


def pack_variables(variables: Mapping[str, Any] | None) -> dict[str, JsonValue]:
    """Return variables for an executor that takes no tables.

    Raises:
        InputError: One is invalid, or a table.
    """
    checked = check_variables(variables)
    for name, value in checked.items():
        if table_kind(value):
            remedy = "Pass numbers, text, dates, lists, dicts, sets or a file, or use SandboxExecutor."
            raise InputError(f"The variable {name!r} is a table, and this executor takes none. {remedy}")
    return {name: pack_value(value) for name, value in checked.items()}


def printed_value(execution: Execution) -> Any:
    """Return what standard output says, which is one JSON document.

    Raises:
        ValueError, RecursionError: It is anything else, or holds too many items.
    """
    return parse(execution.stdout.encode(errors="replace"))


def _check(packed: Any, *, is_hashed: bool = False) -> None:
    """Raise unless reading this takes time and memory in proportion to its length: a program may have written anything."""
    if isinstance(packed, list):
        if is_hashed and sum(map(_may_collide, packed)) > _MAX_COLLIDING:
            raise ValueError("too many large numbers in a set or as keys")
        for part in packed:
            _check(part, is_hashed=is_hashed)
    if not isinstance(packed, dict):
        return
    if len(packed) != 1 or not _KINDS.issuperset(packed):
        raise ValueError("it is no packed value")
    ((kind, content),) = packed.items()
    if kind in _TEXTS and not _TEXTS[kind].fullmatch(content):
        raise ValueError(f"it is no {kind}")
    if check := _CHECKS.get(kind):
        check(*content)
    if kind in _MAPPINGS:
        _check(content[::2], is_hashed=True)
        content = content[1::2]
    _check(content, is_hashed=is_hashed or kind in _HASHED)


def _may_collide(value: Any) -> bool:
    """Return whether a number may have the hash of others: that of small ones is their own."""
    return (isinstance(value, int | float) and abs(value) >= sys.hash_info.modulus) or isinstance(value, dict)


def _check_array(items: Any, dtype: str) -> None:
    match = _DTYPE.fullmatch(dtype)
    if match is None or not isinstance(items, list) or not all(map(_is_cell, items)):
        raise ValueError(f"an array of {dtype[:20]!r}")
    if int(match[3] or 0) * _count(items) > _MAX_TEXT_CHARS:
        raise ValueError("an array of too much text")


def _check_series(index: Any, names: Any, label: Any, values: Any) -> None:
    if not isinstance(names, list):
        raise ValueError("a series with an index without names")
    _check_column(index, values)


def _check_column(index: Any, values: Any) -> None:
    if not isinstance(index, list) or not isinstance(values, list) or len(values) != len(index):
        raise ValueError("a series of two lengths")


def _check_frame(index: Any, names: Any, labels: Any, columns: Any) -> None:
    if not all(isinstance(part, list) for part in (names, labels, columns)):
        raise ValueError("a frame without columns")
    for column in columns:
        _check_column(index, column)


def _is_cell(packed: Any) -> bool:
    """Return whether an array may hold this: a scalar, or a list of them. NumPy expands anything else."""
    if isinstance(packed, list):
        return all(map(_is_cell, packed))
    return not isinstance(packed, dict) or _CELLS.issuperset(packed)


def _nested_ranges(packed: Any) -> Iterator[range]:
    """Yield the ranges within a value, but not one that is the value."""
    for part in packed.values() if isinstance(packed, dict) else packed:
        if isinstance(part, dict) and "builtins.range" in part:
            yield range(*part["builtins.range"])
        elif isinstance(part, list | dict):
            yield from _nested_ranges(part)


def _count(items: Any) -> int:
    return sum(map(_count, items)) if isinstance(items, list) else 1


_CELLS = {
    *("builtins.int", "builtins.complex", "datetime.date", "datetime.datetime", "datetime.timedelta"),
    *("pandas.Timestamp", "pandas.NaTType"),
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
_CHECKS: dict[str, Callable[..., None]] = {
    "numpy.ndarray": _check_array,
    "pandas.Series": _check_series,
    "pandas.DataFrame": _check_frame,
}
