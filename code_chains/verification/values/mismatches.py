"""What pydantic finds wrong with a value: convert what is only another notation, and describe the rest."""

from __future__ import annotations

import datetime
import decimal
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Any

from code_chains.verification.values.json_data import shortened_repr

MAX_SHOWN, MAX_PATH_CHARS = 5, 100
MAX_EXPONENT = 400
"""Decimals beyond it are not converted: their digits would take too much memory."""
_MIDNIGHT = datetime.time()
_EXPECTED = {
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "decimal_type": "a number",
    "string_type": "text",
    "bool_type": "True or False",
    "date_type": "a date (YYYY-MM-DD)",
    "date_parsing": "a date (YYYY-MM-DD)",
    "date_from_datetime_parsing": "a date (YYYY-MM-DD)",
    "datetime_type": "a date with a time (ISO 8601)",
    "datetime_parsing": "a date with a time (ISO 8601)",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "dict_type": "a dict",
    "model_type": "a dict",
    "dataclass_type": "a dict",
    "model_attributes_type": "a dict",
    "missing": "a value here, but the key is missing",
    "none_required": "None",
}
"""What the most frequent errors of pydantic expect, in few words; for others there is pydantic's own message."""


def convert_notation(holder: list[Any], problem: Any) -> None:
    """Replace what an error is about by the same in the notation that is expected, if that is possible."""
    parent, key = _parent(holder, problem["loc"])
    if parent is None:
        return
    for is_case, convert in _CONVERSIONS.get(problem["type"], ()):
        if is_case(parent[key]):
            parent[key] = convert(parent[key])
            return


def _parent(holder: list[Any], location: tuple[Any, ...]) -> tuple[Any, Any]:
    """Return the list or dict that holds what a location points to; None if it names parts of the type, as of a union."""
    parent, key = holder, 0
    for part in location:
        child = parent[key]
        is_index = isinstance(child, list) and isinstance(part, int) and part < len(child)
        if is_index or (isinstance(child, dict) and part in child):
            parent, key = child, part
        elif isinstance(part, int):
            return None, None
    return parent, key


def _is_integral(value: Any) -> bool:
    return (isinstance(value, float) and value.is_integer()) or (
        _is_small_decimal(value) and value == int(value)
    )


def _is_small_decimal(value: Any) -> bool:
    return isinstance(value, decimal.Decimal) and abs(value.adjusted()) < MAX_EXPONENT


def _is_midnight(value: Any) -> bool:
    return isinstance(value, datetime.datetime) and value.time() == _MIDNIGHT and value.tzinfo is None


def _is_date(value: Any) -> bool:
    return isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)


def _is_iso_date(value: Any) -> bool:
    return isinstance(value, str) and len(value) == len("2024-01-31") and value[4:5] == "-"


_Case = tuple[Callable[[Any], bool], Callable[[Any], Any]]
_TO_DATE: tuple[_Case, ...] = ((_is_midnight, lambda value: value.date()),)
_TO_DATETIME: tuple[_Case, ...] = (
    (_is_date, lambda value: datetime.datetime.combine(value, _MIDNIGHT)),
    (_is_iso_date, lambda value: f"{value}T00:00:00"),
)
_CONVERSIONS: dict[str, tuple[_Case, ...]] = {
    **dict.fromkeys(("int_type", "int_from_float"), ((_is_integral, int),)),
    "float_type": ((_is_small_decimal, float),),
    **dict.fromkeys(("date_type", "date_parsing", "date_from_datetime_parsing"), _TO_DATE),
    **dict.fromkeys(("datetime_type", "datetime_parsing"), _TO_DATETIME),
}


def describe_mismatch(problems: Sequence[Mapping[str, Any]], holder: list[Any]) -> str:
    """Describe what differs: the path of each part, what is expected there, and what is there instead."""
    lines = []
    for problem in problems[:MAX_SHOWN]:
        expected = _EXPECTED.get(problem["type"])
        message = f"expected {expected}" if expected else problem["msg"]
        value = "" if problem["type"] == "missing" else f", got {shortened_repr(_at(holder, problem))}"
        lines.append(f"{_path(problem['loc'])}{message}{value}")
    if len(problems) > MAX_SHOWN:
        lines.append(f"and {len(problems) - MAX_SHOWN} more")
    return "; ".join(lines)


def _at(holder: list[Any], problem: Any) -> Any:
    """Return what an error is about, as the program had it."""
    parent, key = _parent(holder, problem["loc"])
    return problem["input"] if parent is None else parent[key]


def _path(location: Iterable[Any]) -> str:
    """Return a location as Python writes it: `items[3].total: `; empty for the value itself."""
    text = ""
    for part in location:
        text += f"[{part}]" if isinstance(part, int) else f".{part}"
    path = text.removeprefix(".")[:MAX_PATH_CHARS]
    return f"{path}: " if path else ""
