"""Measures what becomes of values of each kind at each border, for the table in `values.md`."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, NamedTuple

from langchain_core.stores import InMemoryByteStore

from code_chains import ConversationMemory, Limits, Repair, SandboxExecutor, create_code_chain
from code_chains.chains.answer_value import answer_value
from code_chains.errors import InputError
from code_chains.executors.values import value_of
from code_chains.state import Execution
from code_chains.testing import ScriptedModel, asks_for_code
from code_chains.verification.values.answer_types import AnswerType, AnswerTypeError

SETUP = """
import array, collections, contextlib, dataclasses, datetime, decimal, enum, fractions, io, pathlib, sqlite3, threading
import types, uuid, zoneinfo
import numpy as np, pandas as pd
Point = collections.namedtuple("Point", "x y")
Record = dataclasses.make_dataclass("Record", ["x", "y"])
Color = enum.Enum("Color", {"RED": 1})
Level = enum.IntEnum("Level", {"LOW": 1})
Text = type("Text", (str,), {})
Thing = type("Thing", (), {})
day, moment = datetime.date(2024, 1, 2), datetime.datetime(2024, 1, 2, 3, 4, 5, 6)
berlin = zoneinfo.ZoneInfo("Europe/Berlin")
frame = pd.DataFrame({"key": ["a", "b", "a"], "v": [1, 2, 3]})
cut = pd.cut(pd.Series([1, 9]), [0, 5, 10])
def row():
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    return connection.execute("select 1 as a, 'x' as b").fetchone()
def again():
    items = [1]
    items.append(items)
    return items
def same(a, b):
    if isinstance(a, tuple) and hasattr(a, "_fields"):
        return getattr(b, "_fields", None) == a._fields and tuple(a) == tuple(b)
    if type(a) is not type(b):
        return False
    library = getattr(type(a), "__module__", "").partition(".")[0]
    extension = pd.api.extensions.ExtensionArray
    checks = {pd.DataFrame: "frame", pd.Series: "series", pd.Index: "index", extension: "extension_array"}
    for kind, name in checks.items():
        if isinstance(a, kind):
            with contextlib.suppress(AssertionError):
                getattr(pd.testing, f"assert_{name}_equal")(a, b)
                return True
            return False
    if library == "numpy":
        return (a.dtype, a.shape, repr(a)) == (b.dtype, b.shape, repr(b))
    if library in ("polars", "pyarrow"):
        return bool(a.equals(b))
    if isinstance(a, dict):
        return same(list(a), list(b)) and same(list(a.values()), list(b.values()))
    if isinstance(a, (list, tuple, collections.deque)):
        return len(a) == len(b) and all(map(same, a, b))
    return a is b or repr(a) == repr(b)
def word(arrived, expected, *others):
    if same(arrived, expected):
        return "same"
    name = "None" if arrived is None else type(arrived).__name__
    return f"as {name}" if any(same(arrived, other) for other in others) else "changed"
"""
"""What each expression, on both sides, finds."""


class Kind(NamedTuple):
    """Values of one kind.

    Attributes:
        value: An expression for one of them.
        plain: What it may become, where it cannot be the same; empty if it must not change.
        json: What it may become as JSON, for tools and types of answers; empty if it has no word there.
    """

    value: str
    plain: str = ""
    json: str = ""


ROWS = "[{'key': 'a', 'v': 4}, {'key': 'b', 'v': 2}]"
KINDS: dict[str, Kind] = {
    "numbers, text, None": Kind("[None, True, 1, -2.5, 'é', 7 ** 400]"),
    "NaN": Kind("float('nan')", "", "None"),
    "infinity": Kind("float('inf')"),
    "list within dict": Kind("{'a': [1, {'b': []}]}"),
    "tuple": Kind("(1, (2, [3]))", "", "[1, [2, [3]]]"),
    "set": Kind("{1}", "", "[1]"),
    "frozenset": Kind("frozenset({1})", "", "[1]"),
    "range": Kind("range(3)", "", "[0, 1, 2]"),
    "dict with numbers as keys": Kind("{1: 'a', 2.5: 'b'}", "", "{'1': 'a', '2.5': 'b'}"),
    "dict with dates as keys": Kind("{day: 1}", "", "{'2024-01-02': 1}"),
    "dict with tuples as keys": Kind("{(1, 'a'): 2}"),
    "dict with 1 and '1' as keys": Kind("{1: 'a', '1': 'b'}"),
    "OrderedDict": Kind("collections.OrderedDict(a=1)", "", "{'a': 1}"),
    "Counter": Kind("collections.Counter('aab')", "", "{'a': 2, 'b': 1}"),
    "defaultdict": Kind("collections.defaultdict(list, a=[1])", "{'a': [1]}", "{'a': [1]}"),
    "deque": Kind("collections.deque([1, 2], 3)", "", "[1, 2]"),
    "bytes": Kind("b'text'", "", "'text'"),
    "bytes that are no text": Kind("b'\\xff'"),
    "bytearray": Kind("bytearray(b'a')", "b'a'", "'a'"),
    "date": Kind("day", "", "'2024-01-02'"),
    "datetime": Kind("moment", "", "'2024-01-02T03:04:05.000006'"),
    "datetime with a time zone": Kind(
        "moment.replace(tzinfo=berlin)", "", "'2024-01-02T03:04:05.000006+01:00'"
    ),
    "datetime with a named offset": Kind(
        "moment.replace(tzinfo=datetime.timezone(datetime.timedelta(hours=2), 'CEST'))",
        "",
        "'2024-01-02T03:04:05.000006+02:00'",
    ),
    "time": Kind("datetime.time(3, 4)", "", "'03:04:00'"),
    "timedelta": Kind("datetime.timedelta(days=1, microseconds=5)", "", "'P1DT0.000005S'"),
    "Decimal": Kind("decimal.Decimal('1.10')", "", "'1.10'"),
    "Fraction": Kind("fractions.Fraction(1, 3)", "", "'1/3'"),
    "complex": Kind("1 + 2j", "", "'1+2j'"),
    "UUID": Kind("uuid.UUID(int=1)", "str(uuid.UUID(int=1))", "str(uuid.UUID(int=1))"),
    "path": Kind("pathlib.PosixPath('a/b')", "'a/b'", "'a/b'"),
    "named tuple": Kind("Point(1, 'a')", "", "[1, 'a']"),
    "row of itertuples": Kind("next(frame.itertuples(index=False))", "", "['a', 1]"),
    "row of sqlite3": Kind("row()", "collections.namedtuple('Row', 'a b')(1, 'x')", "{'a': 1, 'b': 'x'}"),
    "dataclass": Kind("Record(1, [2])", "{'x': 1, 'y': [2]}", "{'x': 1, 'y': [2]}"),
    "Enum": Kind("Color.RED", "1", "1"),
    "IntEnum": Kind("Level.LOW", "1", "1"),
    "subclass of str": Kind("Text('a')", "'a'", "'a'"),
    "array of Python": Kind("array.array('i', [1, 2])", "[1, 2]", "[1, 2]"),
    "numpy number": Kind("np.float32(0.5)", "0.5", "0.5"),
    "numpy.datetime64": Kind(
        "np.datetime64('2024-01-02T03:04:05', 'ns')",
        "",
        "'2024-01-02T03:04:05.000000000' or '2024-01-02T03:04:05'",
    ),
    "numpy.ndarray": Kind("np.array([[1, 2], [3, 4]], dtype='int32')", "", "[[1, 2], [3, 4]]"),
    "numpy.ndarray of no rows": Kind("np.zeros((0, 3))", "", "[]"),
    "numpy.ndarray of dates": Kind(
        "np.array(['2024-01-02', 'NaT'], dtype='M8[ns]')",
        "",
        "['2024-01-02T00:00:00.000000000', None] or ['2024-01-02T00:00:00', None]",
    ),
    "numpy.ndarray of objects": Kind("np.array([{'a': 1}, None], dtype=object)", "", "[{'a': 1}, None]"),
    "numpy.ndarray of records": Kind("np.zeros(1, dtype=[('a', 'i4')])", "", "[[0]]"),
    "numpy.ma.MaskedArray": Kind("np.ma.array([1, 2], mask=[0, 1])", "", "[1, None]"),
    "pandas.Timestamp": Kind(
        "pd.Timestamp('2024-01-02 03:04', tz='Europe/Berlin')", "", "'2024-01-02T03:04:00+01:00'"
    ),
    "pandas.Timestamp with nanoseconds": Kind("pd.Timestamp(1)", "", "'1970-01-01T00:00:00.000000001'"),
    "pandas.Timedelta": Kind("pd.Timedelta('1h')", "", "'P0DT1H0M0S' or 'PT1H'"),
    "pandas.NaT": Kind("pd.NaT", "", "None"),
    "pandas.NA": Kind("pd.NA", "", "None"),
    "pandas.Period": Kind("pd.Period('2024-01', 'M')", "", "'2024-01'"),
    "pandas.Interval": Kind("pd.Interval(0, 5)", "", "'(0, 5]'"),
    "frame": Kind("frame.groupby('key').sum()", "", ROWS),
    "frame with an unnamed index": Kind(
        "pd.DataFrame({'v': [1]}, index=['a'])", "", "[{'index': 'a', 'v': 1}]"
    ),
    "frame without rows": Kind("frame[:0]", "", "[]"),
    "frame without anything": Kind("pd.DataFrame()", "", "[]"),
    "frame with two levels of rows": Kind(
        "frame.groupby(['key', 'v']).agg(n=('v', 'size'))[:1]", "", "[{'key': 'a', 'v': 1, 'n': 1}]"
    ),
    "frame with two levels of columns": Kind("frame.groupby('key').agg(['sum', 'mean'])"),
    "frame with two columns of one name": Kind("pd.DataFrame([[1, 2]], columns=['a', 'a'])"),
    "frame with names that are not text": Kind(
        "pd.DataFrame({2024: [1], day: [2]})", "", "[{'2024': 1, '2024-01-02': 2}]"
    ),
    "frame with nullable types": Kind(
        "pd.DataFrame({'i': pd.array([1, None], 'Int64'), 'b': pd.array([True, None], 'boolean'),"
        " 's': pd.array(['a', None], 'string')})",
        "",
        "[{'i': 1, 'b': True, 's': 'a'}, {'i': None, 'b': None, 's': None}]",
    ),
    "array with NaN and NA": Kind(
        "pd.arrays.FloatingArray(np.array([1.5, np.nan, 0]), np.array([False, False, True]))",
        "",
        "[1.5, None, None]",
    ),
    "frame that forbids labels twice": Kind(
        "pd.DataFrame({'v': [1]}).set_flags(allows_duplicate_labels=False)", "", "[{'v': 1}]"
    ),
    "frame of pd.cut": Kind(
        "pd.DataFrame({'group': cut})", "", "[{'group': '(0, 5]'}, {'group': '(5, 10]'}]"
    ),
    "frame with periods": Kind(
        "pd.DataFrame({'m': pd.period_range('2024-01', periods=1, freq='M')})", "", "[{'m': '2024-01'}]"
    ),
    "frame with time zones": Kind(
        "pd.DataFrame({'t': pd.to_datetime(['2024-01-02']).tz_localize('Europe/Berlin')})",
        "",
        "[{'t': '2024-01-02T00:00:00+01:00'}]",
    ),
    "frame with dicts, lists and sets": Kind(
        "pd.DataFrame({'x': [{'a': 1}, {'b': 2}], 'y': [[1], {2}]})",
        "",
        "[{'x': {'a': 1}, 'y': [1]}, {'x': {'b': 2}, 'y': [2]}]",
    ),
    "frame with infinity": Kind("pd.DataFrame({'x': [float('inf')]})"),
    "series": Kind("pd.Series({'north': 1, 'south': 2})", "", "{'north': 1, 'south': 2}"),
    "series with the numbers of its rows": Kind("pd.Series([1, 2], name='n')", "", "[1, 2]"),
    "series by month": Kind(
        "pd.Series([1], index=pd.period_range('2024-01', periods=1, freq='M'))", "", "{'2024-01': 1}"
    ),
    "series with two levels": Kind(
        "frame.groupby(['key', 'v']).size()[:1].rename('n')", "", "[{'key': 'a', 'v': 1, 'n': 1}]"
    ),
    "value_counts": Kind("frame['key'].value_counts()", "", "{'a': 2, 'b': 1}"),
    "value_counts of pd.cut": Kind("cut.value_counts(sort=False)", "", "{'(0, 5]': 1, '(5, 10]': 1}"),
    "series of a sparse type": Kind("pd.Series(pd.arrays.SparseArray([0, 1]))", "", "[0, 1]"),
    "Categorical": Kind("pd.Categorical(['b', 'a'], ['a', 'b'], ordered=True)", "", "['b', 'a']"),
    "index": Kind("pd.Index(['a', 'b'], name='k')", "", "['a', 'b']"),
    "DatetimeIndex": Kind("pd.date_range('2024-01-02', periods=1, freq='D')", "", "['2024-01-02T00:00:00']"),
    "MultiIndex": Kind("pd.MultiIndex.from_tuples([(1, 'a')], names=['x', None])", "", "[[1, 'a']]"),
    "frame.dtypes": Kind("frame.dtypes.astype(str).to_dict()"),
    "dict of dtypes": Kind("{'v': frame['v'].dtype}", "{'v': 'int64'}", "{'v': 'int64'}"),
    "polars.DataFrame": Kind("pl.DataFrame({'a': [1]})", "[{'a': 1}]", "[{'a': 1}]"),
    "polars.Series": Kind("pl.Series('a', [1])", "[1]", "[1]"),
    "pyarrow.Table": Kind("pa.table({'a': [1]})", "[{'a': 1}]", "[{'a': 1}]"),
    "pyarrow.Table with two columns of one name": Kind("pa.table([[1], [2]], names=['a', 'a'])"),
    "frame within a dict": Kind(
        "{'totals': frame}",
        "",
        "{'totals': [{'key': 'a', 'v': 1}, {'key': 'b', 'v': 2}, {'key': 'a', 'v': 3}]}",
    ),
    "generator": Kind("(n for n in range(2))", "[0, 1]", "[0, 1]"),
    "object of a class": Kind("Thing()"),
    "class": Kind("Thing"),
    "function": Kind("same"),
    "lock": Kind("threading.Lock()"),
    "connection": Kind("sqlite3.connect(':memory:')"),
    "list that contains itself": Kind("again()"),
    "ten million items": Kind("[0] * 10_000_000"),
}
_LIBRARIES = {"pl": "polars", "pa": "pyarrow"}
_REASONS = {
    r" is an? ([A-Z]\w+|[a-z_]\w*(?:\.\w+)?)": None,
    "contains itself": "contains itself",
    "infinit|finite": "infinite",
    "UTF-8": "not UTF-8",
    "as text|the key or label|as the key of|of one name|the same name": "names",
    "microseconds": "nanoseconds",
    "more than|too large": "too many items",
    "holds cells": "type of cells",
}
"""What messages say, in a word; None for the type that they name."""


class Borders:
    """A sandbox, and what of this page needs one."""

    def __init__(self, box: SandboxExecutor) -> None:
        self._box = box
        self.names: dict[str, Any] = {}
        exec(f"__name__ = 'values'\nimport polars as pl, pyarrow as pa\n{SETUP}", self.names)

    def row(self, name: str) -> str:
        """Return the row of a kind."""
        cells = [border(self, KINDS[name]) for border in BORDERS.values()]
        return f"| {name} | {' | '.join(cells)} |"

    def variable(self, kind: Kind) -> str:
        """Return what a variable is in a program."""
        return self._inside(kind, "x", variables={"x": self._value(kind)})

    def value(self, kind: Kind) -> str:
        """Return what the value of a program is outside."""
        return self._outside(kind, self._box.run(_program(kind, kind.value), return_value=True))

    def session(self, kind: Kind) -> str:
        """Return what a variable of a session is after a later run."""
        with self._box.session() as session:
            try:
                session.run("kept = x", variables={"x": self._value(kind)})
            except InputError as error:
                return _refusal(error)
            return self._outside(kind, session.run("kept", return_value=True))

    def memory(self, kind: Kind) -> str:
        """Return what a variable of a turn is in the next one, after a new memory rebuilt the state from the store."""
        store = InMemoryByteStore()
        try:
            self._turn(store, "kept = x", variables={"x": self._value(kind)})
        except InputError as error:
            return _refusal(error)
        return str(ast.literal_eval(self._turn(store, _comparing(kind, "kept"))))

    def _turn(self, store: InMemoryByteStore, code: str, **inputs: Any) -> str:
        """Return the output of a turn of a conversation, of which nothing is left but what is in the store."""
        writes = ScriptedModel(lambda messages: f"```python\n{code}\n```")
        with create_code_chain(
            writes, executor=self._box, memory=ConversationMemory(store), interpret=False, solve=Repair(1)
        ) as chain:
            return str(chain.invoke({"query": "What is x?", "session_id": "ann", **inputs})["output"])

    def argument(self, kind: Kind) -> str:
        """Return what the argument of a tool is."""
        taken: list[Any] = []

        def take(it: Any) -> None:
            """Take something."""
            taken.append(it)

        done = self._box.run(_program(kind, f"take({kind.value})"), tools=[take])
        return _refusal(done.error) if not taken else self._word(taken[0], kind, kind.json)

    def result(self, kind: Kind) -> str:
        """Return what the result of a tool is in a program."""
        value = self._value(kind)

        def give() -> Any:
            """Give something."""
            return value

        return self._inside(kind, "give()", tools=[give])

    def answer(self, kind: Kind) -> str:
        """Return what the value of an answer is whose type is `Any`, or a dict."""
        done = self._box.run(_program(kind, kind.value), return_value=True)
        wanted: Any = dict[str, Any] if kind.json[:1] == "{" else Any
        try:
            value = answer_value(done, kind.value, AnswerType(wanted))
        except AnswerTypeError as error:
            return _refusal(error)
        return self._word(value, kind, kind.json)

    def cache(self, kind: Kind) -> str:
        """Return what a cached question with a variable gives."""
        writes = ScriptedModel(
            lambda messages: "```python\nrepr(x)\n```" if asks_for_code(messages) else "Told."
        )
        with create_code_chain(writes, executor=self._box, cache=True, answer_type=str) as chain:
            question = {"query": "What is x?", "variables": {"x": self._value(kind)}}
            try:
                first, second = chain.invoke(question), chain.invoke(question)
            except InputError as error:
                return _refusal(error)
        return "same" if second["cached"] and first["value"] == second["value"] else "not cached"

    def _value(self, kind: Kind) -> Any:
        return eval(kind.value, self.names)

    def _word(self, arrived: Any, kind: Kind, other: str) -> str:
        others = [eval(each, self.names) for each in other.split(" or ") if each]
        return str(self.names["word"](arrived, self._value(kind), *others))

    def _inside(self, kind: Kind, expression: str, **inputs: Any) -> str:
        try:
            done = self._box.run(_comparing(kind, expression), **inputs)
        except InputError as error:
            return _refusal(error)
        return str(ast.literal_eval(done.result)) if done.result else _refusal(done.error)

    def _outside(self, kind: Kind, done: Execution) -> str:
        try:
            return self._word(value_of(done), kind, kind.plain)
        except LookupError as error:
            return _refusal(error)


def _program(kind: Kind, last: str) -> str:
    """Return a program with what the expressions need; polars is slow to import, and few need it."""
    needed = [
        f"import {library} as {short}" for short, library in _LIBRARIES.items() if f"{short}." in kind.value
    ]
    return "\n".join([*needed, SETUP, last])


def _comparing(kind: Kind, expression: str) -> str:
    """Return a program that says what has become of a value."""
    return _program(kind, f"word({expression}, {kind.value}{kind.plain and f', {kind.plain}'})")


def _refusal(error: object) -> str:
    for pattern, word in _REASONS.items():
        if found := re.search(pattern, str(error)):
            return f"refused: {word or found[1].removeprefix('values.')}"
    return f"refused without a reason: {error}"


BORDERS: dict[str, Callable[[Borders, Kind], str]] = {
    "variable": Borders.variable,
    "value": Borders.value,
    "session": Borders.session,
    "memory": Borders.memory,
    "result of a tool": Borders.result,
    "argument of a tool": Borders.argument,
    "answer": Borders.answer,
    "cache": Borders.cache,
}


@contextmanager
def open_borders() -> Iterator[Borders]:
    """Open a sandbox with the libraries loaded."""
    with SandboxExecutor(preload=("numpy", "pandas"), limits=Limits(memory="2G")) as box:
        yield Borders(box)


def rows() -> list[str]:
    """Return the rows of all kinds."""
    with open_borders() as borders:
        return list(map(borders.row, KINDS))
