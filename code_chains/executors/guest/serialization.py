"""Pack values as JSON with exact types and restore them, at both ends: numbers, text, collections, dates, arrays, frames."""

from __future__ import annotations

import collections
import datetime
import importlib
import itertools
import json
import math
import re
import types
from collections.abc import Callable, Iterator
from typing import Any

from . import labelled
from .plain_data import is_number, library_of, plain, tuple_class
from .refusals import UnpackableError, at_place, place_in, type_name
from .wire import Json

MAX_DEPTH = 100
MAX_INT_BITS = 1000
"""Longer integers are packed as hexadecimal text, as JSON is slow with them and refuses the longest."""
SCALARS: set[type] = {type(None), bool, int, float, str}
"""What JSON has."""
CONTAINERS = frozenset([list, dict, set])
"""What changes, and is data all through."""
Convert = Callable[[Any], Any]
"""Packs or unpacks a part of a value."""
ZONE = re.compile(r"UTC(?:[+-]\d\d:\d\d)?|[A-Za-z][\w+/-]{0,60}")
"""Names of time zones."""


def is_flat(items: list[Any]) -> bool:
    """Return whether items are what JSON has, so that long lists need not be looked at one by one."""
    kinds = set(map(type, items))
    return kinds <= SCALARS and not (int in kinds and any(map(is_long, items)))


def is_long(value: Any) -> bool:
    """Return whether a value is an integer that JSON is slow with."""
    return type(value) is int and value.bit_length() > MAX_INT_BITS


def _mapping(value: Any, pack: Packer) -> Any:
    """Return keys and values by turns: a list for each pair would keep the garbage collector busy."""
    return pack.parts([*itertools.chain.from_iterable(value.items())])


def _items(value: Any, pack: Packer) -> Any:
    return pack.parts(list(value))


def _numbers(value: Any, pack: Packer) -> Any:
    """Return the cells of an array in one row, its type and its shape."""
    kind = value.dtype.kind
    if kind not in "biufcmMUSO":
        raise UnpackableError(value, f"is an array of the type {value.dtype}")
    cells = value.view("i8") if kind in "mM" else value
    with at_place("" if value.ndim == 1 else ".flat"):
        return [pack(cells.ravel().tolist()), str(value.dtype), list(value.shape)]


def _moment(value: Any, pack: Packer) -> Any:
    """Return a moment or time as text, with the name of its time zone if that has one."""
    zone = value.tzinfo
    if type(zone).__name__ == "ZoneInfo" and zone.key:
        return [value.replace(tzinfo=None).isoformat(), zone.key, value.fold]
    if has_own_name(zone):
        return [value.isoformat(), str(zone)]
    if zone is None or isinstance(zone, datetime.timezone) or str(zone) == "UTC":
        return value.isoformat()
    remedy = "convert it, e.g. with .astimezone(datetime.timezone.utc)"
    raise UnpackableError(value, f"has a time zone of the type {type_name(zone)}; {remedy}")


def has_own_name(zone: Any) -> bool:
    """Return whether a time zone is an offset with a name, such as CEST."""
    return type(zone) is datetime.timezone and str(zone) != str(datetime.timezone(zone.utcoffset(None)))


def _instant(value: Any, pack: Packer) -> Any:
    """Return a timestamp or duration of pandas as a number, with its unit and the name of its time zone."""
    zone = getattr(value, "tz", None)
    if zone is not None and (has_own_name(zone) or not ZONE.fullmatch(str(zone))):
        raise UnpackableError(
            value, f"has the time zone {str(zone)[:50]!r}; convert it, e.g. with .tz_convert('UTC')"
        )
    return [int(value.asm8.view("i8")), value.unit, str(zone) if zone is not None else None]


PACKERS: dict[str, Callable[[Any, Packer], Any]] = {
    "builtins.int": lambda value, pack: format(value, "x"),
    "builtins.range": lambda value, pack: [value.start, value.stop, value.step],
    **dict.fromkeys(["builtins.dict_keys", "builtins.dict_values", "builtins.dict_items"], _items),
    **dict.fromkeys(
        ["pathlib.PosixPath", "pathlib.PurePosixPath", "uuid.UUID"], lambda value, pack: str(value)
    ),
    "collections.OrderedDict": _mapping,
    "builtins.slice": lambda value, pack: [pack(value.start), pack(value.stop), pack(value.step)],
    "collections.Counter": _mapping,
    **dict.fromkeys(["builtins.tuple", "builtins.set", "builtins.frozenset"], _items),
    "collections.deque": lambda value, pack: [pack(list(value)), value.maxlen],
    **dict.fromkeys(
        ["decimal.Decimal", "fractions.Fraction", "builtins.complex"], lambda value, pack: str(value)
    ),
    "datetime.date": lambda value, pack: value.isoformat(),
    **dict.fromkeys(["datetime.time", "datetime.datetime"], _moment),
    "builtins.dict": _mapping,
    "builtins.bytes": lambda value, pack: value.hex(),
    "datetime.timedelta": lambda value, pack: [value.days, value.seconds, value.microseconds],
    "namedtuple": lambda value, pack: [
        type(value).__name__,
        list(value._fields),
        [pack(item) for item in value],
    ],
    **dict.fromkeys(["numpy.ndarray", "numpy.datetime64", "numpy.timedelta64"], _numbers),
    **dict.fromkeys(["pandas.NaTType", "pandas.NAType"], lambda value, pack: None),
    **dict.fromkeys(["pandas.Timestamp", "pandas.Timedelta"], _instant),
    "pandas.Period": lambda value, pack: [value.ordinal, value.freqstr],
    "pandas.Interval": lambda value, pack: [pack(value.left), pack(value.right), value.closed],
    "pandas.DataFrame": lambda value, pack: labelled.pack_frame(value, pack, labelled.as_list(pack)),
    "pandas.Series": lambda value, pack: labelled.pack_series(value, pack, labelled.as_list(pack)),
    "pandas.Index": labelled.pack_index,
    "pandas.array": lambda value, pack: labelled.pack_array(value, labelled.as_list(pack)),
}


def _dict(content: Any, unpack: Convert) -> Any:
    parts = iter(unpack(content))
    return dict(zip(parts, parts, strict=True))


def _namedtuple(content: Any, unpack: Convert) -> Any:
    name, fields, values = content
    return tuple_class(name, *fields)(*map(unpack, values))


def _number(content: Any, unpack: Convert) -> Any:
    import numpy

    return numpy.dtype(content[0]).type(unpack(content[1]))


def _cells(content: Any, unpack: Convert) -> Any:
    """Return an array, or one of its cells."""
    import numpy

    cells, dtype, shape = unpack(content[0]), content[1], content[2]
    if dtype == "object":
        return numpy.fromiter(cells, object, len(cells)).reshape(shape)
    numbers = numpy.array(cells, "i8" if "64[" in dtype or dtype in ("datetime64", "timedelta64") else dtype)
    return numbers.view(dtype).reshape(shape)


def _rebuild_moment(kind: str) -> Callable[[Any, Convert], Any]:
    def rebuild(content: Any, unpack: Convert) -> Any:
        text, *zone = [content] if isinstance(content, str) else content
        moment = getattr(datetime, kind).fromisoformat(text)
        if not zone:
            return moment
        if len(zone) == 1:
            return moment.replace(tzinfo=datetime.timezone(moment.utcoffset(), zone[0]))
        import zoneinfo

        return moment.replace(tzinfo=zoneinfo.ZoneInfo(zone[0]), fold=zone[1])

    return rebuild


def _rebuild_instant(kind: str) -> Callable[[Any, Convert], Any]:
    def rebuild(content: Any, unpack: Convert) -> Any:
        import numpy
        import pandas

        number, unit, zone = content
        scalar = numpy.timedelta64 if kind == "Timedelta" else numpy.datetime64
        instant = getattr(pandas, kind)(scalar(number, unit))
        return instant.tz_localize("UTC").tz_convert(zone) if zone else instant

    return rebuild


def _of_pandas(name: str) -> Callable[[Any, Convert], Any]:
    """Return what rebuilds a value by a function that takes the packed content, and what unpacks names and cells."""
    return lambda content, unpack: getattr(labelled, name)(content, unpack, unpack)


def _period(content: Any, unpack: Convert) -> Any:
    import pandas

    return pandas.Period(ordinal=content[0], freq=content[1])


def _interval(content: Any, unpack: Convert) -> Any:
    import pandas

    return pandas.Interval(unpack(content[0]), unpack(content[1]), closed=content[2])


def _missing(kind: str) -> Convert:
    def rebuild(_: Any) -> Any:
        import pandas

        return getattr(pandas, kind)

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
    "collections.deque": lambda content, unpack: collections.deque(unpack(content[0]), content[1]),
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
    **{f"datetime.{kind}": _rebuild_moment(kind) for kind in ("time", "datetime")},
    "datetime.timedelta": _by("datetime.timedelta"),
    "namedtuple": _namedtuple,
    "pandas.NaTType": lambda content, unpack: _missing("NaT")(content),
    "pandas.NAType": lambda content, unpack: _missing("NA")(content),
    "numpy.ndarray": _cells,
    "numpy.number": _number,
    **dict.fromkeys(
        ["numpy.datetime64", "numpy.timedelta64"], lambda content, unpack: _cells(content, unpack)[()]
    ),
    **{f"pandas.{kind}": _rebuild_instant(kind) for kind in ("Timestamp", "Timedelta")},
    "pandas.Period": _period,
    "pandas.Interval": _interval,
    "pandas.DataFrame": _of_pandas("frame_of"),
    "pandas.Series": _of_pandas("series_of"),
    "pandas.Index": _of_pandas("index_of"),
    "pandas.array": lambda content, unpack: labelled.extension_of(content, unpack),
}
SAME_AS = {
    "collections.defaultdict": "builtins.dict",
    **dict.fromkeys(["builtins.bytearray", "builtins.memoryview"], "builtins.bytes"),
}
"""Types that become another one, which equals them."""


def kind_of(value: Any) -> str:
    """Return the name under which a value is packed; empty for an object of no such type."""
    cls = type(value)
    library = library_of(cls)
    name = f"{library}.{cls.__name__}"
    if isinstance(value, tuple) and isinstance(getattr(cls, "_fields", None), tuple):
        return "namedtuple"
    if library == "pandas" and hasattr(cls, "nlevels"):
        return "pandas.Index"
    if library == "pandas" and hasattr(cls, "_from_sequence"):
        return "pandas.array"
    name = SAME_AS.get(name, name)
    return name if name in PACKERS else ""


def has_own_methods(kind: type) -> bool:
    """Return whether a class of named tuples defines more than their fields."""
    own = [item for base in kind.__mro__[:-2] if hasattr(base, "_fields") for item in vars(base).items()]
    return any(isinstance(value, METHODS_OF_CLASSES) and name not in GENERATED for name, value in own)


NUMBERS_OF_NUMPY = {
    "bool",
    *(f"{sign}int{bits}" for sign in ("", "u") for bits in (8, 16, 32, 64)),
    *("float16", "float32", "float64", "complex64", "complex128"),
}
"""Types of NumPy's scalars that stay what they are between tests and program, as they are no numbers of Python."""
METHODS_OF_CLASSES = (types.FunctionType, property, classmethod, staticmethod)
GENERATED = {"__new__", "_make", "_replace", "__replace__", "__repr__", "_asdict", "__getnewargs__"}
"""Methods that each class of named tuples has."""
_COPIED = frozenset(
    name for name in PACKERS if not name.startswith(("builtins.", "namedtuple", "collections.Order"))
)
"""Types whose content is never shared."""


class Packer:
    """Packs one value as JSON with its exact types.

    Args:
        lend: Takes objects of other types, and parts that are too deep; without it they become the plain data that they
            consist of, or are refused.
        max_items: Items that the value may have.
        as_text: Kinds whose values become their text.
        share: Takes lists, dicts and sets, and returns what stands for them, or None for those that are to be packed.

    Attributes:
        has_converted: Whether the packed value has other types than the value.
    """

    def __init__(
        self,
        lend: Callable[[Any], Json] | None = None,
        max_items: float = math.inf,
        as_text: frozenset[str] = frozenset(),
        share: Callable[[Any], Json | None] | None = None,
    ) -> None:
        self.has_converted, self._as_text, self._share = False, as_text, share
        self._lend, self._max_items, self._items = lend, max_items, 0
        self._within = set[int]()

    def __call__(self, value: Any) -> Any:
        """Return a value as JSON.

        Raises:
            UnpackableError: A part of it has a type that cannot be passed.
        """
        kind = type(value)
        if kind in SCALARS and not is_long(value):
            return value
        if self._share is not None and kind in CONTAINERS and (shared := self._share(value)) is not None:
            return shared
        if kind is list and is_flat(value):
            return self.parts(value)
        if id(value) in self._within or len(self._within) >= MAX_DEPTH:
            if self._lend is not None:
                return self._lend(value)
            is_again = id(value) in self._within
            raise UnpackableError(
                value, "contains itself" if is_again else f"is nested more than {MAX_DEPTH} levels deep"
            )
        self._within.add(id(value))
        try:
            return self._pack(value)
        except UnpackableError as error:
            if error.part is not value:
                error.place, error.part = place_in(value, error.part) + error.place, value
            raise
        finally:
            self._within.discard(id(value))

    def parts(self, items: list[Any]) -> list[Any]:
        """Return items as JSON."""
        self._items += len(items)
        if self._items > self._max_items:
            raise UnpackableError(items, f"holds more than {self._max_items:,} items")
        return items if is_flat(items) else [self(item) for item in items]

    def _pack(self, value: Any) -> Any:
        kind = type(value)
        if kind is dict:
            return {"builtins.dict": _mapping(value, self)}
        if kind is list:
            return self.parts(value)
        if self._lend is not None and isinstance(value, tuple) and has_own_methods(kind):
            return self._lend(value)
        if name := kind_of(value):
            self.has_converted |= isinstance(value, collections.defaultdict | bytearray | memoryview)
            # What an array or a deque consists of is a list only here.
            pack = Packer(self._lend, as_text=self._as_text) if self._share and name in _COPIED else self
            return str(value) if name in self._as_text else {name: PACKERS[name](value, pack)}
        if self._lend is not None and is_number(value) and str(value.dtype) in NUMBERS_OF_NUMPY:
            return {"numpy.number": [str(value.dtype), self(value.item())]}
        if self._lend is not None and not is_number(value):
            return self._lend(value)
        self.has_converted = True
        return self(plain(value))


REFUSED = "refused"
"""What a program says in place of a value that cannot be passed."""
MAX_VALUE_CELLS, MAX_VALUE_ITEMS = 200_000, 1_000_000
"""Items of the value of a program, and those with the items within them."""


def returned(value: Any) -> bytes:
    """Return the value of a program as JSON, or why it cannot be passed."""
    try:
        value = list(itertools.islice(value, MAX_VALUE_CELLS + 1)) if isinstance(value, Iterator) else value
        if size_of(value) > MAX_VALUE_CELLS:
            raise UnpackableError(value, f"is too large (more than {MAX_VALUE_CELLS:,} items)")
        return json.dumps(Packer(max_items=MAX_VALUE_ITEMS)(value)).encode()
    except UnpackableError as error:
        return refused(error.about("the value"))
    except Exception as error:
        return refused(f"the value cannot be read ({type(error).__name__}: {error})")


def refused(reason: str) -> bytes:
    """Return why a value cannot be passed, as what stands in its place."""
    return json.dumps({REFUSED: reason}).encode()


def size_of(value: Any) -> int:
    """Return how many items a value has, as far as that is known at once."""
    if type(value).__module__.partition(".")[0] in ("numpy", "pandas"):  # Elsewhere `size` may be anything.
        return int(getattr(value, "size", 0))
    return len(value) if isinstance(value, str | bytes | list | dict | tuple | set | frozenset) else 0


def unpack(packed: Any, borrow: Callable[[Json], Any]) -> Any:
    """Return a packed value with its exact types; objects that were lent are passed to `borrow`."""
    if not isinstance(packed, list | dict):
        return packed

    def unpack_part(part: Any) -> Any:
        return unpack(part, borrow)

    if isinstance(packed, list):
        return packed if SCALARS.issuperset(map(type, packed)) else [unpack_part(part) for part in packed]
    kind = next(iter(packed), "")
    return REBUILDERS[kind](packed[kind], unpack_part) if kind in REBUILDERS else borrow(packed)


def unpack_all(values: dict[str, Any]) -> dict[str, Any]:
    """Return packed values by name, none of which is an object that was lent."""
    return {name: unpack(value, no_object) for name, value in values.items()}


def no_object(value: Any) -> Any:
    """Raise for an object that nobody lent."""
    raise ValueError(f"it is no packed value: {str(value)[:100]}")
