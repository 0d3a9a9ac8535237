"""Values as JSON that is rebuilt of exact types: numbers, text, collections, dates, arrays and frames."""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import fractions
import pathlib
import uuid
from collections.abc import Callable
from typing import Any

from .wire import Json

DEEPEST = 100
LONGEST = 1000
"""Bits of a whole number that JSON may hold; it is slow with more, and refuses with many more."""
PLAIN = (type(None), bool, int, float, str)
Way = Callable[[Any], Any]


def _listed(value: Any, pack: Way) -> Any:
    return [pack(item) for item in value]


def _table(value: Any, pack: Way) -> Any:
    return [[pack(key), pack(item)] for key, item in value.items()]


def _frame(value: Any, pack: Way) -> Any:
    columns = [value.iloc[:, number].tolist() for number in range(value.shape[1])]
    return [pack(value.index.tolist()), pack(value.columns.tolist()), pack(columns)]


PACKERS: dict[str, Callable[[Any, Way], Any]] = {
    "builtins.int": lambda value, pack: format(value, "x"),
    "builtins.range": lambda value, pack: [value.start, value.stop, value.step],
    **dict.fromkeys(["builtins.dict_keys", "builtins.dict_values", "builtins.dict_items"], _listed),
    **dict.fromkeys(["pathlib.PosixPath", "pathlib.PurePosixPath", "uuid.UUID"], lambda value, pack: str(value)),
    "collections.OrderedDict": _table,
    "builtins.slice": lambda value, pack: [pack(value.start), pack(value.stop), pack(value.step)],
    "collections.Counter": _table,
    **dict.fromkeys(["builtins.tuple", "builtins.set", "builtins.frozenset", "collections.deque"], _listed),
    **dict.fromkeys(["decimal.Decimal", "fractions.Fraction", "builtins.complex"], lambda value, pack: str(value)),
    **dict.fromkeys(
        ["datetime.date", "datetime.time", "datetime.datetime", "pandas.Timestamp"],
        lambda value, pack: value.isoformat(),
    ),
    "builtins.dict": _table,
    "builtins.bytes": lambda value, pack: value.hex(),
    "datetime.timedelta": lambda value, pack: [value.days, value.seconds, value.microseconds],
    "namedtuple": lambda value, pack: [type(value).__name__, list(value._fields), [pack(item) for item in value]],
    "numpy.ndarray": lambda value, pack: [pack(value.tolist()), str(value.dtype)],
    "pandas.DataFrame": _frame,
    "pandas.Series": lambda value, pack: [pack(value.index.tolist()), pack(value.tolist())],
}


def _named(content: Any, unpack: Way) -> Any:
    name, fields, values = content
    return collections.namedtuple(name, fields)(*map(unpack, values))


def _array(content: Any, unpack: Way) -> Any:
    import numpy

    return numpy.array(unpack(content[0]), dtype=content[1])


def _pandas(kind: str) -> Callable[[Any, Way], Any]:
    def rebuild(content: Any, unpack: Way) -> Any:
        import pandas

        if kind == "Timestamp":
            return pandas.Timestamp(content)
        index, *names, values = map(unpack, content)
        if not names:
            return pandas.Series(values, index=index)
        frame = pandas.DataFrame(dict(enumerate(values)), index=index)
        frame.columns = names[0]
        return frame

    return rebuild


def _each(kind: Way) -> Callable[[Any, Way], Any]:
    return lambda content, unpack: kind(map(unpack, content))


def _text(kind: Way) -> Callable[[Any, Way], Any]:
    return lambda content, unpack: kind(content)


REBUILDERS: dict[str, Callable[[Any, Way], Any]] = {
    "builtins.tuple": _each(tuple),
    "builtins.set": _each(set),
    "builtins.frozenset": _each(frozenset),
    "collections.deque": _each(collections.deque),
    "builtins.int": lambda content, unpack: int(content, 16),
    "builtins.range": lambda content, unpack: range(*content),
    "builtins.dict_keys": lambda content, unpack: dict.fromkeys(map(unpack, content)).keys(),
    "builtins.dict_values": lambda content, unpack: dict(enumerate(map(unpack, content))).values(),
    "builtins.dict_items": lambda content, unpack: dict(map(unpack, content)).items(),
    "collections.OrderedDict": lambda content, unpack: collections.OrderedDict(
        (unpack(key), unpack(value)) for key, value in content
    ),
    "pathlib.PosixPath": lambda content, unpack: pathlib.Path(content),
    "pathlib.PurePosixPath": lambda content, unpack: pathlib.PurePosixPath(content),
    "uuid.UUID": lambda content, unpack: uuid.UUID(content),
    "builtins.slice": lambda content, unpack: slice(*map(unpack, content)),
    "collections.Counter": lambda content, unpack: collections.Counter({unpack(key): unpack(n) for key, n in content}),
    "builtins.dict": lambda content, unpack: {unpack(key): unpack(value) for key, value in content},
    "builtins.bytes": _text(bytes.fromhex),
    "builtins.complex": _text(complex),
    "decimal.Decimal": _text(decimal.Decimal),
    "fractions.Fraction": _text(fractions.Fraction),
    "datetime.date": _text(datetime.date.fromisoformat),
    "datetime.time": _text(datetime.time.fromisoformat),
    "datetime.datetime": _text(datetime.datetime.fromisoformat),
    "datetime.timedelta": lambda content, unpack: datetime.timedelta(*content),
    "namedtuple": _named,
    "numpy.ndarray": _array,
    **{f"pandas.{kind}": _pandas(kind) for kind in ("DataFrame", "Series", "Timestamp")},
}
LIKE = {
    "collections.defaultdict": "builtins.dict",
    "builtins.bytearray": "builtins.bytes",
}


def kind_of(value: Any) -> str:
    """The name under which a value is packed; empty for an object that is none of these."""
    kind = type(value)
    library = kind.__module__.partition(".")[0]
    name = f"{library}.{kind.__name__}"
    if isinstance(value, tuple) and isinstance(getattr(value, "_fields", None), tuple):
        return "namedtuple"
    if name == "numpy.ndarray" and value.dtype.kind not in "biufcUM":
        return ""
    name = LIKE.get(name, name)
    return name if name in PACKERS else ""


def pack(value: Any, lend: Callable[[Any], Json], depth: int = 0) -> Any:
    """A value as JSON; an object of no plain type, and what is too deep, is lent."""

    def below(item: Any) -> Any:
        return pack(item, lend, depth + 1)

    if isinstance(value, enum.Enum) and isinstance(value, int | str):
        return pack(value.value, lend, depth + 1)
    if type(value) in PLAIN and not (type(value) is int and abs(value) >> LONGEST):
        return value
    if depth >= DEEPEST:
        return lend(value)
    if type(value) is list:
        return _listed(value, below)
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        return pack(value.item(), lend, DEEPEST - 1)
    kind = kind_of(value)
    return {kind: PACKERS[kind](value, below)} if kind else lend(value)


def unpack(packed: Any, borrow: Callable[[Json], Any]) -> Any:
    """The value again, of exact types; an object that was lent is borrowed."""

    def below(item: Any) -> Any:
        return unpack(item, borrow)

    if isinstance(packed, list):
        return [below(item) for item in packed]
    if not isinstance(packed, dict):
        return packed
    kind = next(iter(packed))
    return REBUILDERS[kind](packed[kind], below) if kind in REBUILDERS else borrow(packed)
