"""Checks that a program shows its outcome."""

from __future__ import annotations

import ast
import datetime
import re
from collections.abc import Iterator
from operator import attrgetter

from code_chains.analysis.dotted_names import root_of
from code_chains.analysis.parsing import child_statements, names_in
from code_chains.analysis.references import Reading, Use, argument, read, words
from code_chains.analysis.work import walk
from code_chains.records import Problem

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


_PURE = words(
    "builtins.sorted builtins.sum builtins.len builtins.max builtins.min builtins.abs builtins.round builtins.reversed "
    "builtins.str builtins.int builtins.float builtins.list builtins.dict builtins.set builtins.tuple builtins.zip "
    "builtins.map builtins.filter"
)


def results_used(code: str) -> list[Problem]:
    r"""Advise against lines that compute a value and discard it. The last line is shown, as in a notebook.

    Only what surely has no other effect counts: comparisons, arithmetic, names, literals, comprehensions, and
    builtins such as `sorted`. What stands inside `try` or `with` may be there for the exception.

    Example:
        >>> [problem.line for problem in results_used("x = [3, 1]\nsorted(x)\nprint(x)")]
        [2]
    """
    reading = read(code)
    if not reading:
        return []
    message = "The value of this line is thrown away; assign it to a name, or print it"
    problems = []
    for node in _statements(reading.tree):
        if not isinstance(node, ast.Expr) or node is reading.tree.body[-1]:
            continue
        if _is_idle(node.value, reading):
            problems.append(Problem("results_used", message, node.lineno, "advice"))
    return problems


def _statements(tree: ast.Module) -> Iterator[ast.AST]:
    """Yield the statements in order, except those inside `try` and `with`."""
    stack: list[ast.AST] = [tree]
    while stack:
        node = stack.pop()
        yield node
        guarded = isinstance(node, ast.Try | ast.TryStar | ast.With | ast.AsyncWith)
        below = [child for child in child_statements(node) if not guarded or child not in node.body]  # type: ignore[attr-defined]
        stack.extend(reversed(below))


def _is_idle(node: ast.expr, reading: Reading) -> bool:
    """Return whether an expression has no effect but its value."""
    if isinstance(node, ast.Constant):
        return not isinstance(node.value, str) and node.value is not ...
    idle = (ast.Compare | ast.BinOp | ast.UnaryOp | ast.Name | ast.List | ast.Tuple | ast.Set | ast.Dict | ast.JoinedStr
            | ast.ListComp | ast.SetComp | ast.DictComp | ast.GeneratorExp | ast.Call)  # fmt: skip
    return isinstance(node, idle) and all(_is_pure(part, reading) for part in walk(node))


def _is_pure(node: ast.AST, reading: Reading) -> bool:
    if isinstance(node, ast.Call):
        names = reading.names(node.func)
        runs = (
            [*node.args[:1], *node.keywords] if names & {"builtins.map", "builtins.filter"} else node.keywords
        )
        return names <= _PURE and not names_in(*runs)
    effects = ast.NamedExpr | ast.Await | ast.Yield | ast.YieldFrom | ast.BitOr | ast.LShift | ast.RShift
    return not isinstance(node, effects)


def prints_something(code: str) -> list[Problem]:
    r"""Check that there is something to see: it prints, shows, logs, writes, raises, ends with a value or sets `result`.

    When in doubt it says nothing: whatever calls something that is not known to be silent may print.

    Example:
        >>> [str(problem) for problem in prints_something("total = sum([1, 2])")]
        ['Nobody would see the outcome. Print the answer at the end.']
        >>> prints_something("total = sum([1, 2])\nprint(total)")
        []
    """
    reading = read(code)
    if not reading or "result" in reading.defined or not is_silent(reading):
        return []
    if reading.tree.body and isinstance(reading.tree.body[-1], ast.Expr):
        return []
    return [Problem("prints_something", "Nobody would see the outcome. Print the answer at the end.")]
