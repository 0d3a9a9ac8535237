"""Determinism: whether a program may print something else the next time. When in doubt, it may."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from code_chains.analysis.references import Reading, match, read, words
from code_chains.analysis.work import spend, walk

_CHANGING = words(
    "time random numpy.random secrets uuid os tempfile glob shutil platform timeit cProfile profile psutil tracemalloc"
    " resource gc signal sched select threading multiprocessing concurrent asyncio subprocess ctypes importlib socket ssl"
    " urllib.request http ftplib smtplib requests httpx aiohttp boto3 yfinance email.utils dateparser dateutil sympy.stats"
    " sklearn scipy statsmodels networkx seaborn plotly polars duckdb dask pyspark ray joblib torch tensorflow keras jax"
    " transformers xgboost lightgbm catboost optuna faker numpy.empty numpy.empty_like"
    " builtins.id builtins.hash builtins.exec builtins.eval builtins.__import__"
)
"""Modules and functions whose results may change: clocks, randomness, the machine, the network, parallel work."""
_CHANGING_METHODS = words(
    "now today utcnow localtime random rand randprime randMatrix sample samples shuffle rvs"
    " stat lstat iterdir glob rglob walk cwd home absolute resolve"
)
"""Attributes of any value whose results may change."""
_CLOCKS = words("now today")
_OUTSIDE = re.compile(r"(?:https?|ftps?|s3|gs|hf)://|/(?:dev|proc|sys)/", re.IGNORECASE)
_SQL = re.compile(r"\s*(?:select|with|insert|create|update|replace|values)\b", re.IGNORECASE)
_CHANGING_SQL = re.compile(
    r"\b(?:now|random|randomblob|rand|current_\w+|get_current_\w+|today|uuid\w*|gen_random_uuid|setseed|using\s+sample"
    r"|(?:transaction|clock|statement)_timestamp|localtime|localtimestamp|sysdate|getdate|tablesample|getenv"
    rf"|age\s*\(|(?:date|time|datetime|julianday|unixepoch)\s*\(\s*\)|{_OUTSIDE.pattern})",
    re.IGNORECASE,
)
_SETS = words("builtins.set builtins.frozenset")
_SET_TYPES = _SETS | {"builtins.object"}
_ITERATING = words(
    "builtins.list builtins.tuple builtins.enumerate builtins.iter builtins.map builtins.zip builtins.filter"
)
_SET_METHODS = words("union intersection difference symmetric_difference copy")
_ORDER_FREE_METHODS = _SET_METHODS | words("add discard remove update issubset issuperset isdisjoint sort")
_ORDER_FREE_NODES = (ast.comprehension, ast.Compare, ast.If, ast.While, ast.Return)
_ORDER_FREE = words(
    "builtins.sorted builtins.len builtins.min builtins.max builtins.sum builtins.any builtins.all"
)
_VIEWS = words("keys items")


def is_repeatable(code: str) -> bool:
    """Return whether a program shows the same each time, as far as its source tells. When in doubt, it does not.

    A program that draws random numbers is not repeatable, seeded or not. Anything but Python is taken for SQL.

    Example:
        >>> is_repeatable("print(sum(range(6)))"), is_repeatable("import random as r; print(r.random())")
        (True, False)
    """
    reading = read(code)
    if reading is None:
        return not _CHANGING_SQL.search(code)
    if any(match(use.name, _CHANGING) or use.last in _CHANGING_METHODS for use in reading.uses):
        return False
    constants = [node.value for node in reading.nodes if isinstance(node, ast.Constant)]
    texts = [value for value in constants if isinstance(value, str)]
    if any(text.strip().lower() in _CLOCKS or _OUTSIDE.match(text) for text in texts):
        return False
    if any(map(_SQL.match, texts)) and _CHANGING_SQL.search(code):
        return False
    if any(use.name in _SETS and not use.call for use in reading.uses):  # As in `defaultdict(set)`.
        return False
    try:
        return not _UnorderedValues(reading).has_effect()
    except RecursionError:  # An expression of thousands of operators: unknown.
        return False


class _UnorderedValues:
    """Values whose order differs between processes: sets, above all of strings; addresses, too."""

    def __init__(self, reading: Reading) -> None:
        self.reading = reading
        self.names: set[str] = set()
        assigned = [pair for node in reading.nodes for pair in _assigned(node)]
        sorted_later = {
            node.func.value.id
            for node in reading.nodes
            if isinstance(node, ast.Call)
            and isinstance(node.func, ast.Attribute)
            and isinstance(node.func.value, ast.Name)
            and node.func.attr == "sort"
        }
        new = {""}
        while new:  # What is named after what is named after a set.
            spend(len(assigned))
            named = {name for name, value in assigned if self._is_unordered(value)}
            new = named - sorted_later - self.names
            self.names |= new

    def has_effect(self) -> bool:
        """Return whether its order may have an effect: it is not only counted, compared, searched or sorted."""
        return any(map(self._has_effect_in, self.reading.nodes))

    def _has_effect_in(self, node: ast.AST) -> bool:
        """Return whether the order of a part of a node may have an effect there. When in doubt, it has."""
        if isinstance(node, _ORDER_FREE_NODES) or (isinstance(node, ast.expr) and self._is_unordered(node)):
            return False  # What is unordered has an effect where it is used.
        match node:
            case ast.Assign(targets=[ast.Name()]) | ast.AnnAssign(target=ast.Name()):
                return False
            case ast.AugAssign(target=ast.Name(id=name)) if name in self.names:
                return False
            case ast.Attribute(value=value, attr=name):  # A name of a class is not followed.
                return name in self.names or (name not in _ORDER_FREE_METHODS and self._is_unordered(value))
            case ast.Call() if self._ignores_order(node):
                return False
            case ast.DictComp(generators=generators) if any(
                self._is_unordered(item.iter) for item in generators
            ):
                return True
        parts = [part for part in ast.iter_child_nodes(node) if isinstance(part, ast.expr)]
        return any(map(self._is_unordered, parts))

    def _ignores_order(self, call: ast.Call) -> bool:
        """Return whether the order of its arguments makes no difference to a call."""
        if isinstance(call.func, ast.Attribute) and self._is_unordered(call.func.value):
            return True
        has_key = "key" in [keyword.arg for keyword in call.keywords]
        return not has_key and self.reading.names(call.func) <= _ORDER_FREE

    def _is_unordered(self, node: ast.expr) -> bool:
        match node:
            case ast.Name(id=name):
                return name in self.names
            case ast.Set(elts=elements):
                return not all(
                    isinstance(item, ast.Constant) and isinstance(item.value, int) for item in elements
                )
            case ast.SetComp():
                return True
            case ast.ListComp(generators=generators) | ast.GeneratorExp(generators=generators):
                return any(self._is_unordered(item.iter) for item in generators)
            case ast.BinOp(left=left, op=ast.BitOr() | ast.BitAnd() | ast.BitXor() | ast.Sub(), right=right):
                return any(self._is_unordered(side) or _is_view(side) for side in (left, right))
            case ast.Call():
                return self._returns_unordered(node)
        return False

    def _returns_unordered(self, call: ast.Call) -> bool:
        names = self.reading.names(call.func)
        if names & _SET_TYPES:
            return True
        if names & _ITERATING:
            return any(map(self._is_unordered, call.args))
        match call.func:
            case ast.Name(id=name):
                return f"{name}()" in self.names
            case ast.Attribute(value=value, attr=method):
                is_set = method in _SET_METHODS and self._is_unordered(value)
                return is_set or f"{method}()" in self.names
        return False


def _is_view(node: ast.expr) -> bool:
    """Return whether it is a view of a dict, whose intersection with another one is a set."""
    return isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in _VIEWS


def _assigned(node: ast.AST) -> Iterator[tuple[str, ast.expr]]:
    """Yield names with what is assigned to them, and `name()` with what a function returns."""
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            yield name, value
        case ast.AnnAssign(target=ast.Name(id=name), value=ast.expr() as value):
            yield name, value
        case ast.FunctionDef(name=name):
            for item in walk(node):
                if isinstance(item, ast.Return) and item.value:
                    yield f"{name}()", item.value
