"""The program's end of variables: decode what `inputs.variables` encoded on the host."""

from __future__ import annotations

import base64
import datetime
import decimal
from collections.abc import Callable
from typing import Any

TAG = "$"
"""Key of a dict that stands for another value: its kind, beside its `value`."""

SCALARS: set[type] = {str, int, float, bool, type(None)}


def decode(value: Any) -> Any:
    """Return the value that was encoded."""
    if type(value) in SCALARS:
        return value
    if isinstance(value, list):
        return value if SCALARS.issuperset(map(type, value)) else [decode(item) for item in value]
    if not isinstance(value, dict):
        return value
    if TAG in value:
        return DECODERS[value[TAG]](value["value"])
    return {key: decode(item) for key, item in value.items()}


def pairs(items: list[list[Any]]) -> dict[Any, Any]:
    return {decode(key): decode(item) for key, item in items}


DECODERS: dict[str, Callable[[Any], Any]] = {
    "dict": pairs,
    "tuple": lambda items: tuple(decode(items)),
    "set": lambda items: set(decode(items)),
    "frozenset": lambda items: frozenset(decode(items)),
    "bytes": base64.b64decode,
    "datetime": datetime.datetime.fromisoformat,
    "date": datetime.date.fromisoformat,
    "time": datetime.time.fromisoformat,
    "timedelta": lambda parts: datetime.timedelta(*parts),
    "Decimal": decimal.Decimal,
    "complex": lambda parts: complex(*parts),
}
