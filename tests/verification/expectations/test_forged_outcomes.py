"""What a wrong program may try that its tests nearly believed: each is a failure, and none is the tests' own fault."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from code_chains.chains import EvaluateChain
from code_chains.errors import InputError
from code_chains.executors import Limits, SandboxExecutor
from code_chains.state import Verdict


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxExecutor]:
    with SandboxExecutor(limits=Limits(seconds=20), min_idle=2) as sandbox:
        yield sandbox


def verdict(sandbox: SandboxExecutor, code: str, **given: Any) -> Verdict:
    state = {"code": code, "query": "", "execution": sandbox.run(code), **given}
    decided: Verdict = EvaluateChain(executor=sandbox).invoke(state)["verdict"]
    return decided


PICKLE = """
import pickle
class E:
    def __reduce__(self): return (exec, ("import gc\\nfor o in gc.get_objects():\\n"
        " if type(o).__name__ == 'Bench': type(o).finish = lambda *a: None",))
def dump(): return pickle.dumps(E())
open('m.pkl', 'wb').write(dump())
"""
TEXT_THAT_RAISES = """
class BrokenTestError(Exception): pass
class X:
    def __str__(self): raise BrokenTestError('The tests are wrong')
    __repr__ = __str__
def f(x): raise ValueError(X())
"""
RAW = """
import gc, os, time
def forge():
    channel = next(o for o in gc.get_objects() if type(o).__name__ == "RpcChannel")
    channel.send({})
    time.sleep(2)
"""
UPPER = "def f(s): return s"
TRIES: dict[str, tuple[str, str]] = {
    "a reply that ends loops": (
        RAW.format('{"value": {}}') + "def square(x): return x * x if x < 2 else forge()",
        "for got, want in zip(map(square, [1, 2, 3]), [1, 4, 9]):\n    assert got == want",
    ),
    "a reply that hides a failure": (
        RAW.format('{"shared": [[1001, "list", []]], "value": 1}')
        + "def f(cb):\n    try: cb(5)\n    except BaseException: pass\n    forge()",
        "import pytest\ndef check(x): assert x == 4\nwith pytest.raises(ValueError):\n    f(check)",
    ),
    "a failure behind many cases": (
        "def f(n): return n if n < 500 else 0",
        "\n".join(f"assert f({number}) == {number}" for number in range(520)),
    ),
    "a variable called output": (UPPER, "output = f('abc')\nassert output == 'ABC'"),
    "a parameter called output": (
        UPPER,
        "import pytest\n@pytest.mark.parametrize('text, output', [('a', 'A')])\n"
        "def test(text, output): assert f(text) == output",
    ),
    "a pickled file": (PICKLE, "import pickle\nassert pickle.load(open('m.pkl', 'rb')) == 1"),
    "pickled bytes": (PICKLE, "import pickle\nassert pickle.loads(dump()) == 1"),
    "pickled by pandas": (PICKLE, "import pandas\nassert pandas.read_pickle('m.pkl') == 1"),
    "an empty list": ("def f(): return []", "import numpy as np\nassert np.allclose(f(), 4)"),
    "an empty array": (
        "import numpy\ndef f(): return numpy.empty((0, 1))",
        "import numpy as np\nassert (f() == np.array([1, 2, 3])).all()",
    ),
    "a text that raises": (TEXT_THAT_RAISES, "assert f(2) == 4"),
    "a number without a text": ("def f(x): return 10 ** 5000", "assert f(2) == 4"),
    "a callback that is not called": (
        "def f(cb): pass",
        "seen = []\ndef cb(x): seen.append(x)\nf(cb)\nassert seen[0] == 1",
    ),
    "an argument that it empties": (
        "def mean(data): data.clear()\n",
        "data = [1, 2]\nr = mean(data)\nassert r == sum(data) / len(data)",
    ),
    "an assertion that it swallows": (
        "def each(cb):\n    try: cb(2)\n    except AssertionError: pass",
        "def cb(x): assert x == 1\neach(cb)\nassert True",
    ),
    "a variable of the tests": (
        "import re\ndef f(cb):\n    try: cb(None)\n    except TypeError as e:\n"
        "        return int(re.findall(r'want = (\\d+)', str(getattr(e, '__notes__', '')))[0])",
        "want = 42\ndef cb(x): return x + 1 + 0 * want\nassert f(cb) == want",
    ),
    "the capitals of a doctest": (UPPER, ">>> f('abc')\n'ABC'\n"),
    "zeros": ("print(7)", "assert output.strip() == '007'"),
    "one of two answers": ("print('Hello')\ndef f(): print('Bye')", "f()\nassert output == 'Hello'"),
}


@pytest.mark.rows(4)
@pytest.mark.parametrize(("code", "tests"), TRIES.values(), ids=TRIES)
def test_a_wrong_program_fails(sandbox: SandboxExecutor, code: str, tests: str) -> None:
    assert verdict(sandbox, code, tests=tests).status == "failed"


def test_broken_tests_of_a_model_make_nothing_plausible(sandbox: SandboxExecutor) -> None:
    found = verdict(sandbox, "def f(x): return 5\nprint(f(2))", generated_tests="assert f(2) == 1 / 0")
    assert found.status == "unverified"


def test_an_object_says_once_whether_it_is_true(sandbox: SandboxExecutor) -> None:
    code = (
        "calls = []\nclass A:\n    def name(self): pass\n    def __bool__(self): return 3 not in calls\n"
        "def valid(x): return A()\ndef g(x): calls.append(x)"
    )
    assert verdict(sandbox, code, tests="a = valid(1)\nassert a\ng(3)\nassert not a").status == "failed"


@pytest.mark.parametrize(
    "used", ["import runpy\nrunpy.run_path('s.txt')", "import subprocess\nsubprocess.run(['python', 's'])"]
)
def test_tests_do_not_run_files_of_the_program(sandbox: SandboxExecutor, used: str) -> None:
    with pytest.raises(InputError, match="run a file of the program"):
        verdict(sandbox, "x = 1", tests=f"{used}\nassert x == 1")


def test_what_a_test_says_has_no_control_characters(sandbox: SandboxExecutor) -> None:
    found = verdict(sandbox, "def f(): raise ValueError('\\x1b[31mred')", tests="assert f() == 1")
    assert ("\x1b" in found.reason, "red" in found.reason) == (False, True)
