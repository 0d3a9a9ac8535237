"""Tests see which objects are the same and what changes them, as if they ran in the program's process."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from code_chains.chains import EvaluateChain
from code_chains.executors import Limits, SandboxExecutor
from code_chains.state import Verdict

COPIES = "a = [1, 2]\nb = copied(a)\nassert b == a\nassert b is not a"
GRID = "g = grid(2)\ng[0][0] = 1\nassert g == [[1, 0], [0, 0]]"
NEW = "first = new()\nfirst.append(1)\nassert new() == []"
PUSH = "a = [1]\nassert push(a, 2) is a\nassert a == [1, 2]"
BAG = "bag = Bag()\nbag.items.append(3)\nassert bag.total() == 3\nkept = bag.items\nbag.put(4)\nassert kept == [3, 4]"
PUTTING = "class Bag:\n    def __init__(self): self.items = {}\n    def put(self, n): self.items.append(n)\n"
SUMMING = "    def total(self): return sum(self.items)"
SAME = "x = []\nassert same(x, x)\nassert not same([], [])"
FIRST = "o = [1]\nassert first([o, 2]) is o"
LOOP = "l = knot()\nassert l[0] is l"
TREE = "class Tree:\n    def __contains__(self, n): return {}\n    def __eq__(self, o): return {}"
HOLDS = "assert 2 in Tree()\nassert 9 not in Tree()"
PROGRAMS = {
    "a copy": ("verified", "def copied(l): return list(l)", COPIES),
    "no copy": ("failed", "def copied(l): return l", COPIES),
    "rows of their own": ("verified", "def grid(n): return [[0] * n for _ in range(n)]", GRID),
    "one row n times": ("failed", "def grid(n): return [[0] * n] * n", GRID),
    "a new list": ("verified", "def new(): return []", NEW),
    "one list for all": ("failed", "def new(l=[]): return l", NEW),
    "a list that is changed": ("verified", "def push(l, v):\n    l.append(v)\n    return l", PUSH),
    "a changed copy": ("failed", "def push(l, v): return l + [v]", PUSH),
    "a list of an object": ("verified", PUTTING.format("[]") + SUMMING, BAG),
    "a copy of a list of an object": (
        "failed",
        "class Bag:\n    def __init__(self): self._l = []\n    items = property(lambda self: list(self._l))\n"
        "    def put(self, n): self._l.append(n)\n    def total(self): return sum(self._l)",
        BAG,
    ),
    "two names of one list": ("verified", "def same(a, b): return a is b", SAME),
    "lists that are equal": ("failed", "def same(a, b): return a == b", SAME),
    "a list in a list": ("verified", "def first(l): return l[0]", FIRST),
    "a list that holds itself": ("verified", "def knot():\n    l = []\n    l.append(l)\n    return l", LOOP),
    "a set that is changed": (
        "verified",
        "def note(seen, n): seen.add(n)",
        "s = {1}\nnote(s, 2)\nassert s == {1, 2}\ns.clear()\nnote(s, 3)\nassert s == {3}",
    ),
    "a dict that is gone through": (
        "verified",
        "def square(n): return n * n",
        "d = {1: 2, 2: 3}\nfor key in d:\n    assert square(key) == key * key\nassert len(d) == 2",
    ),
    "a decorated function": (
        "verified",
        "import functools\ndef plain(f):\n    @functools.wraps(f)\n    def g(*a): return f(*a)\n    return g",
        "@plain\ndef h(x): return x\nassert (h(2), h.__name__) == (2, 'h')",
    ),
    "a type in an annotation": (
        "verified",
        "def f(x: int) -> str: return str(x)",
        "assert f.__annotations__['return'] is str",
    ),
    "what an object holds": ("verified", TREE.format("n == 2", "o is self"), HOLDS),
    "an object that holds anything": ("failed", TREE.format("True", "True"), "assert 2 in Tree()"),
    "an object that holds another": ("failed", TREE.format("n == 9", "False"), HOLDS),
    "a class in place of a function": (
        "failed",
        "class f:\n    def __init__(self, x): pass\n    def __eq__(self, o): return isinstance(o, int) and o < 99",
        "assert f(2) == 4",
    ),
    "chance that is patched": (
        "verified",
        "import random\ndef roll(): return random.randint(1, 6)",
        "def test_roll(monkeypatch):\n    monkeypatch.setattr('random.randint', lambda a, b: 9)\n    assert roll() == 9\n"
        "def test_again():\n    assert roll() < 7",
    ),
    "chance that is mocked": (
        "verified",
        "import random\ndef roll(): return random.random()",
        "from unittest.mock import patch\nwith patch('random.random', return_value=7):\n    assert roll() == 7\n"
        "assert roll() < 1",
    ),
    "the environment": (
        "verified",
        "import os\ndef where(): return os.environ.get('PLACE', 'nowhere')",
        "def test_place(monkeypatch):\n    monkeypatch.setenv('PLACE', 'here')\n    assert where() == 'here'\n"
        "def test_none():\n    assert where() == 'nowhere'",
    ),
}
CALLED = {
    "an object that is called": "class A:\n    def __call__(self, x): return x * 2\ndouble = A()",
    "a partial function": "from functools import partial\nfrom operator import mul\ndouble = partial(mul, 2)",
    "a method of an object": "class S:\n    def double(self, x): return 2 * x\ndouble = S().double",
}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxExecutor]:
    with SandboxExecutor(limits=Limits(seconds=20), min_idle=2) as sandbox:
        yield sandbox


@pytest.mark.parametrize(("status", "code", "tests"), PROGRAMS.values(), ids=PROGRAMS)
def test_what_is_the_same_and_what_is_changed(
    sandbox: SandboxExecutor, status: str, code: str, tests: str
) -> None:
    state = {"code": code, "query": "", "execution": sandbox.run(code), "tests": tests}
    decided: Verdict = EvaluateChain(executor=sandbox).invoke(state)["verdict"]
    assert decided.status == status, decided.reason


@pytest.mark.parametrize("code", CALLED.values(), ids=CALLED)
def test_examples_call_whatever_can_be_called(sandbox: SandboxExecutor, code: str) -> None:
    state = {"code": code, "query": "", "execution": sandbox.run(code), "examples": [(2, 4), (3, 6)]}
    assert EvaluateChain(executor=sandbox).invoke(state)["verdict"].status == "verified"
