"""The value of a program's last expression with its type: numbers, text, dates, collections, arrays and frames."""

from __future__ import annotations

import json
import re
from typing import Any

from code_chains.executors.sandbox.inside.display import VALUE_TYPE
from code_chains.executors.sandbox.inside.serialization import REBUILDERS, unpack
from code_chains.state import Execution

__all__ = ["has_value", "value_of"]

_KINDS = set(REBUILDERS) - {"namedtuple"}
_DTYPE = re.compile(
    r"bool|u?int\d{1,2}|float\d{1,3}|complex\d{1,3}|(datetime|timedelta)64(\[\w{1,3}\])?|<U(\d{1,6})"
)
"""Types of arrays; that of text says how much memory each item takes."""
_MAX_TEXT_ITEM = 1000
"""Longest text of an array of texts, whose items are all as long as the longest."""
_TEXTS = {
    "fractions.Fraction": re.compile(r"-?\d{1,1000}(/\d{1,1000})?"),
    "decimal.Decimal": re.compile(r"[-+\w.]{1,1000}"),
    "builtins.complex": re.compile(r"[-+\w.()]{1,100}"),
    "builtins.int": re.compile(r"-?[0-9a-f]+"),
}
"""What a program may have written that is costly to read as anything else."""


def has_value(execution: Execution) -> bool:
    """Return whether the value of the last expression came with its type."""
    return any(data.media_type == VALUE_TYPE for data in execution.display_data)


def value_of(execution: Execution) -> Any:
    """Return the value of the last expression: numbers, text, dates, collections, NumPy arrays, pandas frames and series.

    Raises:
        LookupError: There is none, it is too large or holds other objects, or the program forged it. `result` has
            its text.
    """
    for data in execution.display_data:
        if data.media_type == VALUE_TYPE:
            try:
                packed = json.loads(data.data)
                _check(packed)
                return unpack(packed, _no_object)
            except (ValueError, TypeError, ArithmeticError, ImportError, RecursionError, KeyError) as error:
                raise LookupError(f"The value of the program cannot be read: {error}") from error
    raise LookupError("The program ended with no value, or with one that is too large or of another type.")


def _check(packed: Any) -> None:
    """Raise unless reading this takes time and memory in proportion to its length: a program may have written anything."""
    if isinstance(packed, list):
        for part in packed:
            _check(part)
    if not isinstance(packed, dict):
        return
    if len(packed) != 1 or not _KINDS.issuperset(packed):
        raise ValueError("it is no packed value")
    ((kind, content),) = packed.items()
    if kind == "numpy.ndarray":
        _check_array(*content)
    if kind in _TEXTS and not _TEXTS[kind].fullmatch(content):
        raise ValueError(f"it is no {kind}")
    _check(content)


def _check_array(items: Any, dtype: str) -> None:
    match = _DTYPE.fullmatch(dtype)
    if match is None or int(match[3] or 0) > _MAX_TEXT_ITEM:
        raise ValueError(f"an array of {dtype[:20]!r}")


def _no_object(_: Any) -> Any:
    raise ValueError("it is no packed value")
