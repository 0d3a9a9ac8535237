"""What tests must not do with data of a program: run it by unpickling, or find it right because it is empty."""

from __future__ import annotations

import pickle
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

DATA = {
    "builtins": frozenset(
        "bool bytearray bytes complex dict float frozenset int list object range set slice str tuple".split()
    ),
    "copyreg": {"_reconstructor"},
    "_codecs": {"encode"},
    "collections": {"OrderedDict", "defaultdict", "Counter", "deque"},
    "datetime": {"date", "datetime", "time", "timedelta", "timezone"},
    "decimal": {"Decimal"},
    "fractions": {"Fraction"},
    "uuid": {"UUID"},
}
"""What a pickle may name, by module."""
LIBRARIES = ("numpy", "pandas")
LIBRARY_FUNCTIONS = (
    "_reconstruct",
    "scalar",
    "_frombuffer",
    "_unpickle_block",
    "new_block",
    "_new_Index",
    "__newobj__",
)
COMPARISONS = tuple(
    (
        "testing.assert_allclose testing.assert_array_equal testing.assert_almost_equal allclose isclose"
        " array_equal testing.assert_array_almost_equal testing.assert_equal testing.assert_array_less"
    ).split()
)


def restrict_pickles() -> None:
    """Let unpickling give data alone: a pickle of the program's could otherwise run code beside the tests."""
    compiled: Any = pickle.Unpickler

    class Unpickler(compiled):  # type: ignore[misc]
        """Finds data alone."""

        def find_class(self, module: str, name: str) -> Any:
            check(module, name)
            return super().find_class(module, name)

    pure: Any = pickle._Unpickler
    find = pure.find_class

    def find_class(self: Any, module: str, name: str) -> Any:
        check(module, name)
        return find(self, module, name)

    def load(file: Any, **options: Any) -> Any:
        return Unpickler(file, **options).load()

    def loads(data: Any, /, **options: Any) -> Any:
        import io

        return Unpickler(io.BytesIO(data), **options).load()

    pure.find_class = find_class
    for module in (pickle, sys.modules.get("_pickle"), sys.modules.get("shelve")):
        for name, value in (("Unpickler", Unpickler), ("load", load), ("loads", loads)):
            if module is not None and hasattr(module, name):
                setattr(module, name, value)


def check(module: str, name: str) -> None:
    """Raise unless a pickle names data."""
    library = module.partition(".")[0]
    is_data = name in DATA.get(module, ()) or (library in LIBRARIES and _is_data_of(module, name))
    if not is_data:
        raise pickle.UnpicklingError(f"Tests must not unpickle {module}.{name} of a program. Compare data.")


def _is_data_of(module: str, name: str) -> bool:
    if "." in name:
        return False
    __import__(module)
    return isinstance(getattr(sys.modules[module], name, None), type) or name in LIBRARY_FUNCTIONS


def refuse_empty_arrays() -> None:
    """Let comparisons of NumPy fail if one side alone is empty, which equals anything."""
    import numpy

    for path in COMPARISONS:
        owner, _, name = path.rpartition(".")
        place = getattr(numpy, owner) if owner else numpy
        setattr(place, name, _with_sizes(getattr(place, name), numpy, raises=bool(owner)))


def _with_sizes(compare: Callable[..., Any], numpy: Any, *, raises: bool) -> Callable[..., Any]:
    @wraps(compare)
    def compare_sizes(got: Any, expected: Any, *args: Any, **options: Any) -> Any:
        sizes = set()
        for value in (got, expected):
            try:
                sizes.add(int(numpy.size(value)) == 0)
            except (TypeError, ValueError):
                return compare(got, expected, *args, **options)
        if len(sizes) == 1:
            return compare(got, expected, *args, **options)
        if raises:
            raise AssertionError("Nothing was compared: one of both is empty")
        return False

    return compare_sizes
