"""Tests see objects of the program as if they ran in its process: operators, context managers, errors and classes."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from code_chains.chains import EvaluateChain
from code_chains.executors import Limits, SandboxExecutor
from code_chains.state import Verdict

COLOR = (
    "from enum import IntEnum\nclass Color(IntEnum):\n    RED = 1\n    BLUE = 2\n"
    "    def other(self): return Color(3 - self)\ndef f(c): return c.other()\ndef g(c): return isinstance(c, Color)"
)
MEMBERS = (
    "assert f(Color.RED) is Color.BLUE\nassert f(Color.RED) == 2\nassert g(Color.RED)\n"
    "assert isinstance(f(Color.RED), int)\n"
    "assert Color.RED.other().name == 'BLUE'\nassert [10, 20][Color.RED] == 20\nassert {Color.RED: 'x'}[1] == 'x'\n"
    "assert repr(Color.RED) == '<Color.RED: 1>'\nassert type(Color.RED) is Color\nassert Color['RED'].value == 1\n"
    "assert [c.name for c in Color] == ['RED', 'BLUE']\nassert sorted([Color.BLUE, Color.RED]) == [1, 2]"
)
TEXTS = (
    "from enum import Enum, StrEnum\nclass S(StrEnum):\n    A = 'a'\nclass T(str, Enum):\n    B = 'b'\n"
    "def f(): return {'k': S.A, S.A: [T.B]}"
)
TEXT_MEMBERS = (
    "assert f() == {'k': 'a', 'a': ['b']}\nassert f()['k'].name == 'A'\nassert f()[S.A][0] is T.B\n"
    "assert S.A.upper() == 'A'\nassert (str(S.A), str(T.B)) == ('a', 'T.B')\nassert 'x' + S.A == 'xa'"
)
FLAGS = "from enum import IntFlag\nclass P(IntFlag):\n    R = 4\n    W = 2\ndef f(): return P.R | P.W"
BELOW = (
    "import datetime\nclass L(list): pass\nclass D(dict): pass\nclass S(str): pass\nclass N(float): pass\n"
    "class Day(datetime.date): pass\ndef f(): return [L([1]), D(a=1), S('x'), N(2), Day(2024, 1, 2)]"
)
CONTENT = "import datetime\nassert f() == [[1], {'a': 1}, 'x', 2.0, datetime.date(2024, 1, 2)]\nassert f()[0] != [2]"
COUNTER = "class C:\n    def __init__(self, n): self.n = n\n"
IN_PLACE = "a = C(1)\nb = a\na += C(2)\nassert b.n == 3\nassert a is b"
UNDOING = (
    "class undone:\n    def __init__(self, d): self.d, self.old = d, dict(d)\n    def __enter__(self): return self.d\n"
    "    def __exit__(self, kind, error, trace):\n        if kind is ValueError: self.d.clear(); self.d.update(self.old)\n"
)
UNDONE = (
    "import pytest\nd = {'a': 1}\nwith pytest.raises(ValueError):\n    with undone(d):\n        d['a'] = 5\n"
    "        raise ValueError('no')\nassert d == {'a': 1}"
)
SWALLOWING = "class locked:\n    def __enter__(self): return self\n    def __exit__(self, *a): return True\n"
RAISED = "import pytest\nwith pytest.raises(KeyError):\n    with locked():\n        raise KeyError('a')"
IGNORING = (
    "class ignoring:\n    def __init__(self, *kinds): self.kinds = kinds\n    def __enter__(self): return self\n"
    "    def __exit__(self, kind, error, trace): return kind is not None and issubclass(kind, self.kinds)\n"
)
IGNORED = "with ignoring(ZeroDivisionError):\n    1 / 0\nassert ignoring(KeyError)"
EXIT = "import pytest\nwith pytest.raises(SystemExit) as e:\n    leave()\nassert e.value.code == 3"
CHAINED = "def f():\n    try: int('a')\n    except ValueError as error: raise KeyError('b')"
CAUSE = (
    "import pytest\nwith pytest.raises(KeyError) as e: f()\nassert isinstance(e.value.__cause__, ValueError)"
)
POINT = "from typing import NamedTuple\nclass Point(NamedTuple):\n    x: int\n    y: int\n"
NORM = "    def norm(self): return abs(self.x) + abs(self.y)\n"
ITERABLE = "from collections.abc import Iterable, Sized\n"
ITERABLE += "assert isinstance(Bag(), Iterable)\nassert not isinstance(Bag(), Sized)\n"
ITERABLE += "assert hasattr(Bag(), '__iter__')\nassert not hasattr(Bag(), '__len__')"
BAG = "class Bag:\n    def __init__(self): self.items = [1]\n"
TYPES = "assert type(pet()) is Cat\nassert type(pet()) is not Dog\nassert pet().__class__.__name__ == 'Cat'"
PETS = "class Cat: pass\nclass Dog: pass\ndef pet(): return {}()"
PROGRAMS = {
    "members of an enumeration that are numbers": ("verified", COLOR, MEMBERS),
    "another number than its member": ("failed", COLOR, "assert f(Color.RED) == 1"),
    "members of an enumeration that are texts": ("verified", TEXTS, TEXT_MEMBERS),
    "flags": (
        "verified",
        FLAGS,
        "assert f() == 6\nassert P.R in f()\nassert f() & P.W\nassert P.R.name == 'R'",
    ),
    "objects of classes below plain ones": ("verified", BELOW, CONTENT),
    "the class of an object below a plain one": (
        "verified",
        BELOW,
        "assert isinstance(f()[0], list | tuple)\nassert isinstance(f()[2], str)\nassert not isinstance(f()[0], dict)",
    ),
    "other content in a class below a plain one": ("failed", BELOW, "assert f()[0] == [2]"),
    "a class below `list` that equals anything": (
        "failed",
        "class L(list):\n    def __eq__(self, other): return True\ndef f(): return L([1])",
        "assert f() == [2]",
    ),
    "an operator in place": (
        "verified",
        COUNTER + "    def __iadd__(self, o):\n        self.n += o.n\n        return self",
        IN_PLACE,
    ),
    "an operator that is not in place": (
        "failed",
        COUNTER + "    def __add__(self, o): return C(self.n + o.n)",
        IN_PLACE,
    ),
    "an operator in place without a result": (
        "failed",
        COUNTER + "    def __iadd__(self, o): self.n += o.n",
        IN_PLACE,
    ),
    "a block that is undone": ("verified", UNDOING, UNDONE),
    "a block that is not undone": ("failed", UNDOING.replace("ValueError", "KeyError"), UNDONE),
    "a block that swallows": ("failed", SWALLOWING, RAISED),
    "a block that does not swallow": ("verified", SWALLOWING.replace("True", "False"), RAISED),
    "a block that ignores": ("verified", IGNORING, IGNORED),
    "a failed assertion in a block that swallows": (
        "failed",
        SWALLOWING,
        "with locked():\n    assert 1 == 2",
    ),
    "a wrong result in a block that swallows": (
        "failed",
        SWALLOWING + "def f(): return None",
        "with locked():\n    assert f()[0] == 1",
    ),
    "an exit": ("verified", "import sys\ndef leave(): sys.exit(3)", EXIT),
    "another exit": ("failed", "import sys\ndef leave(): sys.exit(4)", EXIT),
    "an exit that nobody expects": ("failed", "import sys\ndef f(): sys.exit(0)", f"{EXIT}\nassert f() == 1"),
    "a cause": ("verified", f"{CHAINED} from error", CAUSE),
    "no cause": ("failed", f"{CHAINED} from None", CAUSE),
    "named tuples with methods": (
        "verified",
        POINT + NORM + "def moved(p): return Point(p.x + 1, p.y)",
        "assert Point(3, -4).norm() == 7\nassert moved(Point(1, 2)) == (2, 2)\nassert moved(Point(1, 2)) == Point(2, 2)\n"
        "assert moved(Point(1, 2)) != (1, 2)\nassert isinstance(moved(Point(1, 2)), tuple)",
    ),
    "named tuples": (
        "verified",
        POINT + "def moved(p): return Point(p.x + 1, p.y)",
        "assert moved(Point(1, 2)) == (2, 2)\nassert isinstance(moved(Point(1, 2)), Point)",
    ),
    "what an object can": ("verified", BAG + "    def __iter__(self): return iter(self.items)", ITERABLE),
    "what an object cannot": ("failed", BAG, ITERABLE),
    "a class": ("verified", PETS.format("Cat"), TYPES),
    "another class": ("failed", PETS.format("Dog"), TYPES),
    "a docstring that is kept": (
        "verified",
        "import functools\ndef kept(f):\n    @functools.wraps(f)\n    def g(*a): return f(*a)\n    return g",
        "@kept\ndef h():\n    'Say hi.'\nassert h.__doc__ == 'Say hi.'",
    ),
    "a property of a class": (
        "verified",
        COUNTER + "    @property\n    def twice(self): return 2 * self.n",
        "assert isinstance(C.twice, property)\nassert C(2).twice == 4",
    ),
    "no property of a class": (
        "failed",
        COUNTER + "    def twice(self): return 2 * self.n",
        "assert isinstance(C.twice, property)",
    ),
    "a session in a docstring": ("verified", "def f(x): return x + 1", '"""\n>>> f(1)\n2\n"""'),
    "a wrong session in a docstring": ("failed", "def f(x): return x", '"""\n>>> f(1)\n2\n"""'),
    "attributes of an object": (
        "verified",
        COUNTER,
        "assert vars(C(1)) == {'n': 1}\nassert C(2).__dict__ == {'n': 2}",
    ),
    "an attribute that is not to be there": ("failed", COUNTER, "assert 'n' not in vars(C(1))"),
    "what a class has": (
        "verified",
        COUNTER + "    @property\n    def twice(self): return 2 * self.n",
        "assert isinstance(vars(C)['twice'], property)\nassert isinstance(C.__dict__['twice'], property)",
    ),
    "a property of an error": (
        "verified",
        "class Low(Exception):\n    def __init__(self, need): self.need = need\n"
        "    @property\n    def twice(self): return 2 * self.need\n"
        "def pay(): raise Low(5)",
        "import pytest\nwith pytest.raises(Low) as e: pay()\nassert (e.value.need, e.value.twice) == (5, 10)\n"
        "assert not hasattr(e.value, 'other')",
    ),
    "a number of NumPy": (
        "verified",
        "import numpy as np\ndef f(): return np.int64(4)",
        "assert f() == 4\nassert f() + 1 == 5\nassert not isinstance(f(), int)\nassert {f(): 1}[4] == 1\nassert f() in [4]",
    ),
    "a truth value of NumPy": (
        "failed",
        "import numpy as np\ndef f(): return np.bool_(True)",
        "assert f() is True",
    ),
    "a tuple in a list": ("failed", "def f(): return [['a', 1]]", "assert f() == [('a', 1)]"),
    "a list in a tuple": (
        "verified",
        "def f(): return [[1, 1]]",
        "assert f() != [(1, 1)]\nassert f() == [[1, 1]]",
    ),
}


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxExecutor]:
    with SandboxExecutor(limits=Limits(seconds=20), min_idle=2) as sandbox:
        yield sandbox


def verdict(sandbox: SandboxExecutor, code: str, tests: str) -> Verdict:
    state = {"code": code, "query": "", "execution": sandbox.run(code), "tests": tests}
    decided: Verdict = EvaluateChain(executor=sandbox).invoke(state)["verdict"]
    return decided


@pytest.mark.parametrize(("status", "code", "tests"), PROGRAMS.values(), ids=PROGRAMS)
def test_objects_are_as_in_one_process(sandbox: SandboxExecutor, status: str, code: str, tests: str) -> None:
    found = verdict(sandbox, code, tests)
    assert (found.status, "broken" in found.reason) == (status, False)


def test_a_test_of_unittest_is_told_by_its_method(sandbox: SandboxExecutor) -> None:
    tests = (
        "import unittest\nclass T(unittest.TestCase):\n    def test_a(self): self.assertEqual(f(1), 1)\n"
        "    def test_b(self):\n        self.assertEqual(f(2), 3)\n"
    )
    found = verdict(sandbox, "def f(x): return x", tests)
    assert [(result.line, result.status) for result in found.tests] == [(3, "pass"), (4, "fail")]
