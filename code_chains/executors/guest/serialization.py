"""Pack values as JSON with exact types and restore them, at both ends: numbers, text, collections, dates, arrays, frames."""

from __future__ import annotations

import collections
import enum
import importlib
import itertools
from collections.abc import Callable
from typing import Any

from .wire import Json

MAX_DEPTH = 100
MAX_INT_BITS = 1000
"""Longer integers are packed as hexadecimal text, as JSON is slow with them and refuses the longest."""
SCALARS: set[type] = {type(None), bool, int, float, str}
"""What JSON has."""
Convert = Callable[[Any], Any]
"""Packs or unpacks a part of a value."""


def _list(value: Any, pack: Convert) -> Any:
    return value if type(value) is list and is_flat(value) else [pack(item) for item in value]


def is_flat(items: list[Any]) -> bool:
    """Return whether items are what JSON has, so that long lists need not be looked at one by one."""
    kinds = set(map(type, items))
    return kinds <= SCALARS and not (int in kinds and any(map(is_long, items)))


def is_long(value: Any) -> bool:
    """Return whether a value is an integer that JSON is slow with."""
    return type(value) is int and value.bit_length() > MAX_INT_BITS


def _mapping(value: Any, pack: Convert) -> Any:
    """Return keys and values by turns: a list for each pair would keep the garbage collector busy."""
    return _list([*itertools.chain.from_iterable(value.items())], pack)


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
    "collections.OrderedDict": _mapping,
    "builtins.slice": lambda value, pack: [pack(value.start), pack(value.stop), pack(value.step)],
    "collections.Counter": _mapping,
    **dict.fromkeys(["builtins.tuple", "builtins.set", "builtins.frozenset", "collections.deque"], _list),
    **dict.fromkeys(
        ["decimal.Decimal", "fractions.Fraction", "builtins.complex"], lambda value, pack: str(value)
    ),
    **dict.fromkeys(
        ["datetime.date", "datetime.time", "datetime.datetime", "pandas.Timestamp"],
        lambda value, pack: value.isoformat(),
    ),
    "builtins.dict": _mapping,
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


def _dict(content: Any, unpack: Convert) -> Any:
    parts = iter(unpack(content))
    return dict(zip(parts, parts, strict=True))


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
    "collections.OrderedDict": lambda content, unpack: collections.OrderedDict(_dict(content, unpack)),
    "pathlib.PosixPath": _by("pathlib.Path"),
    "pathlib.PurePosixPath": _by("pathlib.PurePosixPath"),
    "uuid.UUID": _by("uuid.UUID"),
    "builtins.slice": lambda content, unpack: slice(*map(unpack, content)),
    "collections.Counter": lambda content, unpack: collections.Counter(_dict(content, unpack)),
    "builtins.dict": _dict,
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
    if type(value) in SCALARS and not is_long(value):
        return value

    def pack_part(part: Any) -> Any:
        return pack(part, lend, depth + 1)

    if isinstance(value, enum.Enum) and isinstance(value, int | str):
        return pack_part(value.value)
    if depth >= MAX_DEPTH:
        return lend(value)
    if type(value) is dict:
        return {"builtins.dict": _mapping(value, pack_part)}
    if type(value) is list:
        return _list(value, pack_part)
    if type(value).__module__ == "numpy" and getattr(value, "ndim", None) == 0 and hasattr(value, "item"):
        return pack(value.item(), lend, MAX_DEPTH - 1)
    kind = kind_of(value)
    return {kind: PACKERS[kind](value, pack_part)} if kind else lend(value)


def unpack(packed: Any, borrow: Callable[[Json], Any]) -> Any:
    """Return a packed value with its exact types; objects that were lent are passed to `borrow`."""
    if not isinstance(packed, list | dict):
        return packed

    def unpack_part(part: Any) -> Any:
        return unpack(part, borrow)

    if isinstance(packed, list):
        return packed if SCALARS.issuperset(map(type, packed)) else [unpack_part(part) for part in packed]
    kind = next(iter(packed))
    return REBUILDERS[kind](packed[kind], unpack_part) if kind in REBUILDERS else borrow(packed)


def unpack_all(values: dict[str, Any]) -> dict[str, Any]:
    """Return packed values by name, none of which is an object that was lent."""
    return {name: unpack(value, no_object) for name, value in values.items()}


def no_object(value: Any) -> Any:
    """Raise for an object that cannot be packed, or that nobody lent."""
    raise ValueError(f"a value of the type {type(value).__name__} cannot be passed")
