"""Tests that call a program which can neither read nor patch them."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from code_chains.errors import ConfigurationError, ExecutorError, InputError
from code_chains.executors import Limits, SandboxExecutor
from code_chains.testing import ScriptedExecutor
from tests.conftest import at_rest, descendants, soon
from tests.support.other_user import for_landlock

LIAR = "class Liar:\n    def __getattr__(s, n): return lambda *a: True\n"
LIAR += "".join(
    f"    def __{name}__(s, *a): return {what}\n"
    for name, what in {
        **dict.fromkeys(("eq", "lt", "le", "gt", "ge", "contains", "bool"), "True"),
        **dict.fromkeys(("ne",), "False"),
        **dict.fromkeys(("sub", "rsub", "abs", "add", "round", "getitem"), "s"),
    }.items()
)


@pytest.fixture(scope="module")
def executor() -> Iterator[SandboxExecutor]:
    with SandboxExecutor(limits=Limits(seconds=4), preload=("numpy", "pandas"), min_idle=2) as executor:
        executor.run_tests("1", "1")
        yield executor


HOLDS = {
    "a value": ("def f(x): return 2 * x", "assert f(2) == 4 and f('a') == 'aa'"),
    "many calls": (
        "def f(x): return 2 * x",
        "assert [f(i) for i in range(500)] == [2 * i for i in range(500)]",
    ),
    "keywords": ("def f(a, b=1, *, c=2): return a + b + c", "assert f(1, c=3) == 5"),
    "a variable": ("total = {'a': [1, (2, 3)]}", "assert total == {'a': [1, (2, 3)]}"),
    "collections": (
        "from collections import Counter, namedtuple, deque\nP = namedtuple('P', 'x y')\n"
        "def f(): return {1, 2}, frozenset('a'), Counter('aab'), deque([1]), P(1, 2), b'x', 1j",
        "s, z, c, d, p, b, j = f()\n"
        "assert (s, z, c, list(d), b, j) == ({1, 2}, frozenset('a'), {'a': 2, 'b': 1}, [1], b'x', 1j)\n"
        "assert p == (1, 2) and p.x == 1",
    ),
    "dates and fractions": (
        "from datetime import date, datetime, timedelta\nfrom decimal import Decimal\nfrom fractions import Fraction\n"
        "def f(x): return x, Decimal('1.5'), date(2024, 2, 29), datetime(2024, 1, 1, 12), timedelta(hours=1)",
        "from datetime import *\nfrom decimal import Decimal\nfrom fractions import Fraction as F\n"
        "assert f(F(1, 2)) == (F(1, 2), Decimal('1.5'), date(2024, 2, 29), datetime(2024, 1, 1, 12), timedelta(hours=1))",
    ),
    "arrays and frames": (
        "import numpy as np, pandas as pd\n"
        "def f(): return np.arange(3), np.int64(3), pd.DataFrame({'a': [1, 2]}, index=['x', 'y'])",
        "a, n, d = f()\nassert a.sum() == 3 and n == 3 and d.loc['y', 'a'] == 2 and d['a'].tolist() == [1, 2]",
    ),
    "an object": (
        "class Stack:\n    def __init__(self): self.items = []\n    def push(self, x): self.items.append(x)\n"
        "    def pop(self): return self.items.pop()\n    def __len__(self): return len(self.items)",
        "s = Stack(); s.push(1); s.push([2]); assert len(s) == 2 and s.pop() == [2] and s.items == [1]\n"
        "s.name = 'x'; assert s.name == 'x'",
    ),
    "operators of a class": (
        "class V:\n    def __init__(s, x): s.x = x\n    def __add__(s, o): return V(s.x + o.x)\n"
        "    def __eq__(s, o): return s.x == o.x\n    def __repr__(s): return f'V({s.x})'",
        "assert V(1) + V(2) == V(3) and V(1) != V(2) and repr(V(1)) == 'V(1)' and (V(1) + V(1)).x == 2",
    ),
    "an error": (
        "class Empty(ValueError): pass\ndef f(): raise Empty('no')",
        "try: f(); assert False\nexcept Empty as e: assert str(e) == 'no'\ntry: f()\nexcept ValueError: pass",
    ),
    "a change in place": ("def f(x): x.sort()", "xs = [3, 1]; f(xs); assert xs == [1, 3]"),
    "a callback": (
        "def f(g, n): return [g(i) for i in range(n)]",
        "assert f(lambda x: x + 1, 3) == [1, 2, 3]",
    ),
    "a generator": (
        "def f(n):\n    for i in range(n): yield i",
        "assert list(f(3)) == [0, 1, 2] and sum(f(4)) == 6",
    ),
    "a name of a builtin": (
        "sum = sum(range(6))\nlist = [1]\ndef f(): return sum",
        "assert f() == 15 and list((1,)) == [1]",
    ),
    "any keyword": ("def f(target, self): return target - self", "assert f(target=5, self=2) == 3"),
    "a huge number": (
        "import math\ndef f(n): return math.factorial(n)",
        "import math\nassert f(2000) == math.factorial(2000)",
    ),
    "an error of a library": (
        "import json, statistics\ndef f(): json.loads('{')\ndef g(): statistics.mean([])\ndef h(): b'\\xff'.decode()\n"
        "def k(): {}['x']",
        "import json, statistics\n"
        "for call, kind in ((f, json.JSONDecodeError), (g, statistics.StatisticsError), (h, UnicodeDecodeError)):\n"
        "    try: call(); assert False\n    except kind: pass\n"
        "try: k()\nexcept KeyError as error: assert error.args == ('x',)",
    ),
    "an error with its own words": (
        "class E(Exception):\n    def __init__(s, need): s.need = need\n    def __str__(s): return f'needs {s.need}'\n"
        "def f(): raise E(5)",
        "try: f()\nexcept E as error: assert error.need == 5 and str(error) == 'needs 5'",
    ),
    "an iterator of the tests": (
        "def f(xs): return sum(xs)",
        "assert f(x for x in [1, 2]) == 3 and f({1: 2}.values()) == 2",
    ),
    "a slice": ("class L:\n    def __getitem__(s, i): return i.start, i.stop", "assert L()[1:2] == (1, 2)"),
    "a decorator": (
        "from functools import wraps\ndef f(g):\n    @wraps(g)\n    def h(*a): return g(*a) + 1\n    return h",
        "assert f(lambda x: x)(1) == 2",
    ),
    "the same object again": (
        "x = object()\ndef f(): return x",
        "assert f() is f() and len({f(), f()}) == 1",
    ),
    "a keyword that is changed": ("def f(xs): xs.append(1)", "xs = []; f(xs=xs); assert xs == [1]"),
    "a callback from threads": (
        "from concurrent.futures import ThreadPoolExecutor\n"
        "def f(g):\n    with ThreadPoolExecutor(4) as pool: return list(pool.map(g, range(20)))",
        "assert f(lambda n: n + 1) == list(range(1, 21))",
    ),
    "a counter, a range, an enum": (
        "from collections import Counter\nfrom enum import IntEnum\nclass C(IntEnum):\n    RED = 1\n"
        "def f(): return Counter('aab'), range(3), C.RED",
        "c, r, red = f(); assert c.most_common(1) == [('a', 2)] and r == range(3) and red == C.RED == 1",
    ),
    "a coroutine": (
        "async def f(x): return x + 1",
        "import asyncio\nassert await f(1) == 2\nasync def go(): return await f(2)\nassert await go() == 3",
    ),
    "what is printed": (
        "def f(x): print('hi', x)",
        "import io, contextlib\nwith contextlib.redirect_stdout(io.StringIO()) as out: f(3)\n"
        "assert out.getvalue() == 'hi 3\\n'",
    ),
    "a member of an enum": (
        "from enum import Enum\nclass C(Enum):\n    RED = 1\ndef f(): return C.RED",
        "assert f() is C.RED is C(1)",
    ),
    "a frozen record in a set": (
        "from dataclasses import dataclass\n@dataclass(frozen=True)\nclass P:\n    x: int",
        "assert len({P(1), P(1), P(2)}) == 2 and P(1) == P(1)",
    ),
    "a path and keys": (
        "from pathlib import Path\ndef f(p): return Path(p).with_suffix('.md'), {'a': 1}.keys()",
        "from pathlib import Path\npath, keys = f(Path('a.txt')); assert path == Path('a.md') and keys == {'a'}",
    ),
    "a vector times a number": (
        "class V:\n    def __init__(s, x): s.x = x\n    def __mul__(s, n): return V(s.x * n)\n"
        "    def __eq__(s, o): return s.x == o.x",
        "assert V(1) * 2 == V(2) and (V(1) * 3).x == 3",
    ),
    "functions of Python's that are lent": (
        "def f(g, *a): return g(*a)",
        "import math, operator\nassert f(len, 'ab') == 2 and f(int, '3') == 3 and f(sorted, [2, 1]) == [1, 2]\n"
        "assert f(str.upper, 'a') == 'A' and f(math.sqrt, 4) == 2 and f(operator.add, 1, 2) == 3 and f(print) is None",
    ),
    "a double": (
        "def f(g): return g(1)",
        "from unittest.mock import Mock\nm = Mock(return_value=2); assert f(m) == 2; m.assert_called_once_with(1)",
    ),
    "a context manager": (
        "from contextlib import contextmanager\n@contextmanager\ndef f(): yield 3",
        "with f() as n: assert n == 3",
    ),
}
FAILS = {
    "a wrong value": ("def f(x): return 5", "assert f(2) == 4", "AssertionError"),
    "an unknown name": ("def g(x): return 4", "assert f(2) == 4", "name 'f' is not defined"),
    "a liar": (LIAR + "def f(x): return Liar()", "assert f(2) == 4", "AssertionError"),
    "a class that lies": (LIAR + "class f(Liar):\n    def __init__(s, x): pass", "assert f(2) == 4", "Assert"),
    "a liar that is near": (LIAR + "def f(x): return Liar()", "assert abs(f(2) - 4) < 1e-9", "object of the program"),
    "a liar that has it": (LIAR + "def f(x): return Liar()", "assert 4 in f(2)", "object of the program"),
    "a liar that subtracts": (
        "class L:\n    def __sub__(s, o): return 0\n    __rsub__ = __sub__\ndef f(x): return L()",
        "assert abs(f(2) - 4) < 1e-9",
        "object of the program",
    ),
    "a liar that is subtracted": (
        "class L:\n    def __rsub__(s, o): return s\n    def __abs__(s): return 0\ndef f(x): return L()",
        "assert abs(4 - f(2)) < 1e-9",
        "plain value",
    ),
    "builtins of its own": (
        "def abs(x): return 0\ndef all(x): return True\ndef sorted(x): return [4]\ndef f(x): return 99",
        "assert all([abs(f(2) - 4) < 1e-9, sorted([f(2)]) == [4]])",
        "AssertionError",
    ),
    "a patched library": (
        "import math, builtins\nmath.isclose = lambda *a, **k: True\nbuiltins.abs = lambda x: 0\ndef f(x): return 5",
        "import math\nassert math.isclose(f(2), 4) and abs(f(2) - 4) < 1",
        "AssertionError",
    ),
    "an error that ends the tests": (
        "class E(Exception): pass\nE.__module__ = 'unittest.__main__'\ndef f(x): raise E",
        "assert f(2) == 4",
        "E",
    ),
    "an error that skips them": (
        "import unittest\ndef f(x): raise unittest.SkipTest('x')",
        "import unittest\nassert f(2) == 4",
        "Skip",
    ),
    "an end of the loop": ("def f(n): raise StopIteration", "assert all(map(f, [2, 3]))", "StopIteration"),
    "a with that swallows": (
        "class W:\n    def __enter__(s): return 5\n    def __exit__(s, *a): return True\ndef f(): return W()",
        "with f() as v: assert v == 4",
        "AssertionError",
    ),
    "a liar that is rounded": (
        "class L:\n    def __init__(s, x): pass\n    def __sub__(s, o): return s\n    def __abs__(s): return s\n"
        "    def __round__(s, n=0): return 0\nclass f(L): pass",
        "assert round(abs(f(2) - 4), 6) == 0",
        "not to be believed",
    ),
    "a liar that changes in place": (
        "class f:\n    def __init__(s, x): pass\n    def __isub__(s, o): return s\n    def __abs__(s): return 0",
        "n = f(2)\nn -= 4\nassert abs(n) < 1e-6",
        "not to be believed",
    ),
    "a liar with a clock": (
        "class D:\n    def __sub__(s, o): return s\n    def total_seconds(s): return 0.0\ndef f(): return D()",
        "from datetime import datetime\nassert abs((f() - datetime(2024, 1, 1)).total_seconds()) < 1",
        "object of the program",
    ),
    **{
        f"a loan of {power}": ("def f(*a): return 4", f"import operator, os, subprocess, functools, types\n{tests}", "forge")
        for power, tests in {
            "eval": "assert f(eval) == 4",
            "eval in a list": "assert f([1, {'x': eval}]) == 4",
            "eval in a partial": "assert f(functools.partial(eval, '1')) == 4",
            "eval by another name": "names = vars(__import__('builtins'))\nassert f(names['eval']) == 4",
            "getattr": "assert f(x=getattr) == 4",
            "type": "assert f(type) == 4",
            "attrgetter": "assert f(operator.attrgetter) == 4",
            "a system call": "assert f(os.system) == 4",
            "a process": "assert f(subprocess.run) == 4",
            "setattr of object": "assert f(object.__setattr__) == 4",
            "a metaclass": "class M(type): pass\nassert f(M) == 4",
            "a function of functions": "assert f(types.FunctionType) == 4",
        }.items()
    },
    "a loan of its names": ("def f(x): x.clear()", "assert f(globals()) is None", "names of a module"),
    "a loan of a library's names": (
        "def f(x): x['isclose'] = lambda *a: True",
        "import math\nf(vars(math))\nassert math.isclose(1, 2)",
        "names of a module",
    ),
    "an object that is true": (
        "class Yes:\n    def __bool__(s): return True\ndef f(x): return Yes()", "assert f(3)", "its own word",
    ),
    "an exit of the tests": ("x = 1", "import sys\nsys.exit()", "SystemExit"),
    "a look at the tests": ("def f(g): return g.__globals__", "assert f(lambda: 4) == 4", "AttributeError"),
    "an early end": ("import sys\ndef f(x): sys.exit(0)", "assert f(2) == 4", "SystemExit"),
}  # fmt: skip
ENDS = {
    "an exit at once": ("import os; os._exit(0)", "assert f(2) == 4", "killed"),
    "an exit that the tests catch": (
        "import os\ndef f(): os._exit(0)",
        "try: f()\nexcept Exception: pass",
        "killed",
    ),
    "an error of its own": ("1 / 0", "pass", "error"),
    "no end": ("def f():\n    while True: pass", "try: f()\nexcept Exception: pass", "timeout"),
    "a flood": (
        "def f():\n    while True: print('x' * 999)",
        "try: f()\nexcept Exception: pass",
        "output_limit",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize(("code", "tests"), HOLDS.values(), ids=HOLDS)
def test_correct_programs_pass(executor: SandboxExecutor, code: str, tests: str) -> None:
    program, tested = executor.run_tests(code, tests)
    assert (program.status, tested.status, tested.error) == ("ok", "ok", None)


@pytest.mark.rows(12)
@pytest.mark.parametrize(("code", "tests", "says"), FAILS.values(), ids=FAILS)
def test_wrong_or_dishonest_programs_fail(
    executor: SandboxExecutor, code: str, tests: str, says: str
) -> None:
    tested = executor.run_tests(code, tests)[1]
    assert (tested.status, says in str(tested.error)) == ("error", True)


@pytest.mark.slow
@pytest.mark.parametrize(("code", "tests", "status"), ENDS.values(), ids=ENDS)
def test_a_program_that_ends_while_it_is_tested_is_reported(
    executor: SandboxExecutor, code: str, tests: str, status: str
) -> None:
    began = time.monotonic()
    assert executor.run_tests(code, tests)[0].status == status
    assert time.monotonic() - began < 10


def test_tests_get_the_same_files_and_variables(executor: SandboxExecutor, sales: Path) -> None:
    program, tested = executor.run_tests(
        "def f(): return open('sales.csv').readline(), n",
        "assert f() == (open('sales.csv').readline(), n) and n == 3",
        files={"sales.csv": sales},
        variables={"n": 3},
    )
    assert (program.ok, tested.ok) == (True, True)


async def test_async_equals_sync(executor: SandboxExecutor) -> None:
    for code, tests in (HOLDS["a value"], FAILS["a wrong value"][:2]):
        assert await executor.arun_tests(code, tests) == executor.run_tests(code, tests)


def test_nothing_is_left_behind(executor: SandboxExecutor) -> None:
    before = at_rest()
    executor.run_tests("def f(): return 1", "assert f() == 1")
    assert soon(lambda: len(descendants()) <= before)


@pytest.mark.parametrize("require", ["kernel", "landlock"])
def test_each_isolation_level_can_run_tests(require: Any) -> None:
    more: Any = {"launcher": "landlock", "python": for_landlock()} if require == "landlock" else {}
    with SandboxExecutor(preload=(), min_isolation=require, **more) as executor:
        assert executor.run_tests("def f(): return 1", "assert f() == 1")[1].ok


def test_an_executor_that_cannot_isolate_tests_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="SandboxExecutor"):
        ScriptedExecutor(lambda code: "").run_tests("1", "1")


async def test_async_raises_what_sync_raises() -> None:
    executor = SandboxExecutor(preload=())
    executor.close()
    with pytest.raises(ExecutorError, match="closed"):
        await executor.arun_tests("1", "1")


def test_an_invalid_file_leaves_nothing_open(executor: SandboxExecutor) -> None:
    before = len(os.listdir("/proc/self/fd"))
    for _ in range(5):
        with pytest.raises(InputError):
            executor.run_tests("1", "1", files={"a": Path("/nonexistent")})
    assert len(os.listdir("/proc/self/fd")) == before


def test_a_closed_executor_refuses() -> None:
    executor = SandboxExecutor(preload=())
    executor.close()
    with pytest.raises(ExecutorError, match="closed"):
        executor.run_tests("1", "1")
