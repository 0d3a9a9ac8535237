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
MONEY = (
    "class Money:\n    def __init__(self, n): self.n = n\n"
    "    def __eq__(self, o): return self.n == getattr(o, 'n', o)\n"
    "    def __gt__(self, o): return self.n > getattr(o, 'n', o)\n"
    "    def __add__(self, o): return Money(self.n + o.n)"
)
COMPARED = "assert Money(5) > 4\nassert not Money(3) > 4\nassert Money(5) == 5\nassert Money(5) != 6"
LIAR = (
    "class Liar:\n    def __init__(self, *a): pass\n    def __contains__(self, o): return True\n"
    "    def __eq__(self, o): return isinstance(o, int)\n    def __gt__(self, o): return True\n    __ge__ = __gt__"
)
LOOP = "l = knot()\nassert l[0] is l"
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
    "an array in a dict": (
        "verified",
        "import numpy as np\ndef f(d): return {'w': d['w'] * 2}",
        "import numpy as np\nassert f({'w': np.array([1.0, 2.0])})['w'].tolist() == [2.0, 4.0]",
    ),
    "a deque in a list": (
        "verified",
        "from collections import deque\ndef f(): return [deque([1, 2])]",
        "assert list(f()[0]) == [1, 2]",
    ),
    "members as keys": (
        "verified",
        "from enum import Enum\nclass C(Enum):\n    R = 1\n    G = 2\n"
        "class Box:\n    def __init__(self): self.by = {C.R: [1, 2], C.G: [3]}\n"
        "    def total(self): return sum(map(sum, self.by.values()))",
        "b = Box()\nassert len(b.by) == 2\nassert b.total() == 6\nb.by[C.G].append(4)\nassert b.total() == 10",
    ),
    "a dict in another order": (
        "verified",
        "def turned(d, k):\n    d[k] = d.pop(k)\n    return d",
        "d = {1: 1, 2: 2}\nassert list(turned(d, 1)) == [2, 1]\nassert list(d) == [2, 1]",
    ),
    "a deque that stays": (
        "verified",
        "from collections import deque\nclass Q:\n    def __init__(self): self.all = [deque(), []]; self.d = self.all[0]\n"
        "    def n(self): return len(self.all[0])",
        "q = Q()\nq.all[1].append(1)\nq.d.append(1)\nq.all.append(2)\nassert len(q.all) == 3",
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
    "an object of the tests that is returned": (
        "failed",
        "class Solution:\n    def solve(self, x): return self\n    def __eq__(self, o): return isinstance(o, int)",
        "s = Solution()\nassert s.solve(2) == 4",
    ),
    "names of a module": (
        "failed",
        "def f(l):\n    l[0]['floor'] = lambda x: 4\n    return l",
        "import math\nf([vars(math)])\nassert math.floor(9.5) == 4",
    ),
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
    "an object beside plain values": (
        "verified",
        MONEY,
        f"{COMPARED}\nassert Money(1) + Money(2) > 2\nassert 5 == Money(5)",
    ),
    "an object beside a wrong plain value": ("failed", MONEY, "assert Money(5) == 6"),
    "what an object holds": (
        "verified",
        "class Bag:\n    def __init__(self, *all): self.all = all\n    def __contains__(self, n): return n in self.all",
        "assert 3 in Bag(1, 3)\nassert 4 not in Bag(1, 3)",
    ),
    "an object that is beyond all": ("failed", f"{LIAR}\nclass Money(Liar): pass", "assert Money(5) > 4"),
    "an object that equals all numbers": (
        "failed",
        f"{LIAR}\nclass Money(Liar): pass",
        "assert Money(5) == 5",
    ),
    "an object that has all": ("failed", f"{LIAR}\nclass Bag(Liar): pass", "assert 3 in Bag(3)"),
    "a class in place of a function that is compared": (
        "failed",
        f"{LIAR}\nclass clamp(Liar): pass",
        "assert clamp(5) >= 1",
    ),
    "an object of the tests that is returned elsewhere": (
        "failed",
        "class Key:\n    def __eq__(self, o): return isinstance(o, int) and o < 99\n"
        "class Solution:\n    def solve(self, key): return key",
        "assert Solution().solve(Key()) == 4",
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
