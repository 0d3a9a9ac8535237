"""Detect programs that certainly show nothing: everything that they name is known to be silent."""

from __future__ import annotations

import ast
import datetime
import re
from operator import attrgetter

from code_chains.analysis.dotted_names import root_of
from code_chains.analysis.references import Reading, Use, argument, words

_MODULES = words(
    "math cmath statistics random datetime collections itertools functools re decimal fractions string operator heapq "
    "bisect copy time typing dataclasses enum numbers abc json csv __future__"
)
_PRINTING = ("re.DEBUG", "typing.reveal_type")
_BUILTINS = words(
    "abs all any ascii bin bool bytearray bytes callable chr classmethod complex dict divmod enumerate filter float format "
    "frozenset hash hex id int isinstance issubclass iter len list map max memoryview min next object oct ord pow property "
    "range repr reversed round set slice sorted staticmethod str sum super tuple type zip Exception NotImplemented"
)
_LIBRARIES = {"numpy", "pandas"}
_DATA_METHODS = words(
    "DataFrame Series abs agg aggregate all any apply arange argmax argmin argsort array astype between concat copy corr "
    "cumsum date_range describe diff dot drop drop_duplicates dropna dt dtypes eye fillna full groupby head idxmax idxmin "
    "iloc isin isna isnull item linspace loc map max mean median merge min mode nlargest notna nsmallest nunique ones pivot "
    "pivot_table prod quantile query read_csv read_excel read_json read_parquet rename reset_index reshape round set_index "
    "shape size sort sort_values sqrt std str sum tail to_datetime to_dict to_list to_numeric tolist transform unique "
    "value_counts values var where zeros"
)
_TYPES = (
    str,
    bytes,
    int,
    float,
    list,
    dict,
    set,
    tuple,
    datetime.datetime,
    datetime.timedelta,
    re.Pattern,
    re.Match,
)
_KNOWN = _MODULES | _LIBRARIES
_METHODS = _DATA_METHODS.union(*map(dir, _TYPES), ["read", "readline", "readlines", "close"])
_PRINTING_ATTRIBUTES = {"plot", "show", "info", "write", "print", "display"}


def is_silent(reading: Reading) -> bool:
    """Return whether a program certainly shows nothing. False in case of doubt."""
    kinds = set(map(type, reading.nodes))
    if not kinds.isdisjoint({ast.Raise, ast.Assert}):
        return False
    if not _KNOWN.issuperset(map(root_of, map(attrgetter("name"), reading.imports))):
        return False
    own = {node.name for node in reading.nodes if isinstance(node, ast.FunctionDef)}
    return all(_is_silent(use, own, reading) for use in reading.uses)


def _is_silent(use: Use, own: set[str], reading: Reading) -> bool:
    root, *rest = use.name.replace("[]", "").split(".")
    if root == "builtins":
        return bool(rest) and (rest[0] in _BUILTINS or rest[0].endswith("Error") or _only_reads(use, reading))
    if root == "?":
        return not rest or rest[0] in own | _METHODS or (not use.call and rest[0] not in _PRINTING_ATTRIBUTES)
    if root in _LIBRARIES:
        return set(rest) <= _DATA_METHODS
    return root in _MODULES and not use.name.startswith(_PRINTING)


def _only_reads(use: Use, reading: Reading) -> bool:
    if use.name != "builtins.open" or not use.call:
        return False
    mode = argument(use.call, 1, "mode")
    return mode is None or reading.text(mode) in ("r", "rt", "rb")
