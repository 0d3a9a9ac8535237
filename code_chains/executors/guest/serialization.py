"""Serialize values to JSON and restore them with exact types: numbers, text, collections, dates, arrays and frames."""

from __future__ import annotations

import collections
import enum
import importlib
from collections.abc import Callable
from typing import Any

from .wire import Json

MAX_DEPTH = 100
MAX_INT_BITS = 1000
"""Longer integers are packed as hexadecimal text, as JSON is slow with them and refuses the longest."""
JSON_TYPES = (type(None), bool, int, float, str)
Convert = Callable[[Any], Any]
"""Packs or unpacks a part of a value."""


def _list(value: Any, pack: Convert) -> Any:
    return [pack(item) for item in value]


def _pairs(value: Any, pack: Convert) -> Any:
    return [[pack(key), pack(item)] for key, item in value.items()]


def _frame(value: Any, pack: Convert) -> Any:
    columns = [value.iloc[:, number].tolist() for number in range(value.shape[1])]
    return [*_index(value, pack), pack(value.columns.tolist()), pack(columns)]


def _series(value: Any, pack: Convert) -> Any:
    return [*_index(value, pack), pack(value.name), pack(value.tolist())]


def _index(value: Any, pack: Convert) -> Any:
    return [pack(value.index.tolist()), pack(list(value.index.names))]


PACKERS: dict[str, Callable[[Any, Convert], Any]] = {
    "builtins.int": lambda value, pack: format(value, "x"),
    "builtins.range": lambda value, pack: [value.start, value.stop, value.step],
    **dict.fromkeys(["builtins.dict_keys", "builtins.dict_values", "builtins.dict_items"], _list),
    **dict.fromkeys(
        ["pathlib.PosixPath", "pathlib.PurePosixPath", "uuid.UUID"], lambda value, pack: str(value)
    ),
    "collections.OrderedDict": _pairs,
    "builtins.slice": lambda value, pack: [pack(value.start), pack(value.stop), pack(value.step)],
    "collections.Counter": _pairs,
    **dict.fromkeys(["builtins.tuple", "builtins.set", "builtins.frozenset", "collections.deque"], _list),
    **dict.fromkeys(
        ["decimal.Decimal", "fractions.Fraction", "builtins.complex"], lambda value, pack: str(value)
    ),
    **dict.fromkeys(
        ["datetime.date", "datetime.time", "datetime.datetime", "pandas.Timestamp"],
        lambda value, pack: value.isoformat(),
    ),
    "builtins.dict": _pairs,
    "builtins.bytes": lambda value, pack: value.hex(),
    "datetime.timedelta": lambda value, pack: [value.days, value.seconds, value.microseconds],
    "namedtuple": lambda value, pack: [
        type(value).__name__,
        list(value._fields),
        [pack(item) for item in value],
    ],
    "numpy.ndarray": lambda value, pack: [pack(value.tolist()), str(value.dtype)],
    **dict.fromkeys(["pandas.NaTType", "pandas.NAType"], lambda value, pack: None),
    "pandas.DataFrame": _frame,
    "pandas.Series": _series,
}


def _namedtuple(content: Any, unpack: Convert) -> Any:
    name, fields, values = content
    return collections.namedtuple(name, fields)(*map(unpack, values))


def _array(content: Any, unpack: Convert) -> Any:
    import numpy

    return numpy.array(unpack(content[0]), dtype=content[1])


def _missing(kind: str) -> Convert:
    def rebuild(_: Any) -> Any:
        import pandas

        return getattr(pandas, kind)

    return rebuild


def _pandas(kind: str) -> Callable[[Any, Convert], Any]:
    def rebuild(content: Any, unpack: Convert) -> Any:
        import pandas

        if kind == "Timestamp":
            return pandas.Timestamp(content)
        index, names, label, values = map(unpack, content)
        if len(names) > 1 and index:
            index = pandas.MultiIndex.from_tuples(index)
        if kind == "Series":
            table: Any = pandas.Series(values, index=index, name=label)
        else:
            table = pandas.DataFrame(dict(enumerate(values)), index=index)
            table.columns = label
        if len(names) == table.index.nlevels:  # Those of an empty index of several levels are lost.
            table.index.names = names
        return table

    return rebuild


def _collection(kind: Convert) -> Callable[[Any, Convert], Any]:
    return lambda content, unpack: kind(map(unpack, content))


def _from_text(kind: Convert) -> Callable[[Any, Convert], Any]:
    return lambda content, unpack: kind(content)


def _by(name: str) -> Callable[[Any, Convert], Any]:
    """Return what rebuilds a value by a function of a module, which is imported only then: memory counts in each fork."""

    def rebuild(content: Any, unpack: Convert) -> Any:
        module, _, path = name.partition(".")
        function: Any = importlib.import_module(module)
        for attribute in path.split("."):
            function = getattr(function, attribute)
        return function(*content) if isinstance(content, list) else function(content)

    return rebuild


REBUILDERS: dict[str, Callable[[Any, Convert], Any]] = {
    "builtins.tuple": _collection(tuple),
    "builtins.set": _collection(set),
    "builtins.frozenset": _collection(frozenset),
    "collections.deque": _collection(collections.deque),
    "builtins.int": lambda content, unpack: int(content, 16),
    "builtins.range": lambda content, unpack: range(*content),
    "builtins.dict_keys": lambda content, unpack: dict.fromkeys(map(unpack, content)).keys(),
    "builtins.dict_values": lambda content, unpack: dict(enumerate(map(unpack, content))).values(),
    "builtins.dict_items": lambda content, unpack: dict(map(unpack, content)).items(),
    "collections.OrderedDict": lambda content, unpack: collections.OrderedDict(
        (unpack(key), unpack(value)) for key, value in content
    ),
    "pathlib.PosixPath": _by("pathlib.Path"),
    "pathlib.PurePosixPath": _by("pathlib.PurePosixPath"),
    "uuid.UUID": _by("uuid.UUID"),
    "builtins.slice": lambda content, unpack: slice(*map(unpack, content)),
    "collections.Counter": lambda content, unpack: collections.Counter(
        {unpack(key): unpack(n) for key, n in content}
    ),
    "builtins.dict": lambda content, unpack: {unpack(key): unpack(value) for key, value in content},
    "builtins.bytes": _from_text(bytes.fromhex),
    "builtins.complex": _from_text(complex),
    "decimal.Decimal": _by("decimal.Decimal"),
    "fractions.Fraction": _by("fractions.Fraction"),
    "datetime.date": _by("datetime.date.fromisoformat"),
    "datetime.time": _by("datetime.time.fromisoformat"),
    "datetime.datetime": _by("datetime.datetime.fromisoformat"),
    "datetime.timedelta": _by("datetime.timedelta"),
    "namedtuple": _namedtuple,
    "pandas.NaTType": lambda content, unpack: _missing("NaT")(content),
    "pandas.NAType": lambda content, unpack: _missing("NA")(content),
    "numpy.ndarray": _array,
    **{f"pandas.{kind}": _pandas(kind) for kind in ("DataFrame", "Series", "Timestamp")},
}
SAME_AS = {
    "collections.defaultdict": "builtins.dict",
    "builtins.bytearray": "builtins.bytes",
}


def kind_of(value: Any) -> str:
    """Return the name under which a value is packed; empty for an object of no such type."""
    cls = type(value)
    library = cls.__module__.partition(".")[0]
    name = f"{library}.{cls.__name__}"
    if isinstance(value, tuple) and isinstance(getattr(cls, "_fields", None), tuple):
        return "namedtuple"
    if name == "numpy.ndarray" and value.dtype.kind not in "biufcUM":
        return ""
    name = SAME_AS.get(name, name)
    return name if name in PACKERS else ""


def pack(value: Any, lend: Callable[[Any], Json], depth: int = 0) -> Any:
    """Return a value as JSON; objects of other types, and parts that are too deep, are passed to `lend`."""

    def pack_part(part: Any) -> Any:
        return pack(part, lend, depth + 1)

    if isinstance(value, enum.Enum) and isinstance(value, int | str):
        return pack(value.value, lend, depth + 1)
    is_long = type(value) is int and abs(value) >> MAX_INT_BITS
    if type(value) in JSON_TYPES and not is_long:
        return value
    if depth >= MAX_DEPTH:
        return lend(value)
    if type(value) is list:
        return _list(value, pack_part)
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        return pack(value.item(), lend, MAX_DEPTH - 1)
    kind = kind_of(value)
    return {kind: PACKERS[kind](value, pack_part)} if kind else lend(value)


def unpack(packed: Any, borrow: Callable[[Json], Any]) -> Any:
    """Return a packed value with its exact types; objects that were lent are passed to `borrow`."""

    def unpack_part(part: Any) -> Any:
        return unpack(part, borrow)

    if isinstance(packed, list):
        return [unpack_part(part) for part in packed]
    if not isinstance(packed, dict):
        return packed
    kind = next(iter(packed))
    return REBUILDERS[kind](packed[kind], unpack_part) if kind in REBUILDERS else borrow(packed)
