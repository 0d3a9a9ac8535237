"""A verdict says only what a test reached: whose the names in tests are, and what an assertion depends on."""

# ruff: noqa: E501 - programs and tests on one line
from __future__ import annotations

from collections.abc import Iterator

import pytest

from code_chains.chains import EvaluateChain
from code_chains.errors import InputError
from code_chains.executors import Limits, SandboxExecutor
from code_chains.records import Execution, Verdict
from code_chains.verification.expectations import expect


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxExecutor]:
    with SandboxExecutor(limits=Limits(seconds=0.5), min_idle=2) as sandbox:
        yield sandbox


def verdict(sandbox: SandboxExecutor, query: str, tests: str, code: str) -> Verdict:
    run = sandbox.run(code) if "open(" in code or "print(" in code or "plt" in code else Execution("ok")
    state = {"code": code, "query": query, "execution": run, "tests": tests}
    decided: Verdict = EvaluateChain(executor=sandbox).invoke(state)["verdict"]
    return decided


Case = tuple[str, str, str]
"""A question, its tests, and a program."""
FAILED: dict[str, Case] = {
    "inherited case": (
        "Write double(x)",
        "import unittest\nclass Base(unittest.TestCase):\n    n = 3\n    def test_x(self): self.assertEqual(double(self.n), 2 * self.n)\nclass T(Base):\n    n = 4",
        "def double(x): return x + 3",
    ),
    "raised by hand": (
        "Write double(x)",
        "if double(2) != 4: raise AssertionError('no')",
        "def double(x): return 5",
    ),
    "no file of the question": ("Write 42 to out.txt", "assert open('out.txt').read() == '42'", "x = 1"),
    "max unrelated": ("Write max(numbers)", "assert max([4, 8, 15]) == 15", "x = 1"),
    "max wrong": ("Write max(numbers)", "assert max([4, 8, 15]) == 15", "def max(xs): return 0"),
    "round": (
        "Write a function round(x, n) that rounds half up",
        "assert round(2.675, 1) == 2.7",
        "def round_half_up(x, n): return 1",
    ),
    "learner sum wrong": ("Add", "assert sum == 6", "sum = 5"),
    "one lacks fails": ("Write f", "assert f(3) == 4\nassert sum([1]) == 1", "def f(x): return x"),
    "int object": ("Write f", "assert isinstance(f(3), int)", "int = object\ndef f(x): return 'no'"),
    "type int": ("Write f", "assert type(f(3)) == int", "int = str\ndef f(x): return 'x'"),
    "type int plain": ("Write f", "assert type(f(3)) != int", "int = 5\ndef f(x): return 5"),
    "own sum oracle": (
        "Write total(xs)",
        "assert total([1,2]) == sum([1,2])",
        "def sum(xs): return 0\ndef total(xs): return 0",
    ),
    "own sum asked2": (
        "Write total(xs), which gives what sum(xs) gives",
        "assert total([1,2]) == sum([1,2])",
        "def sum(xs): return 0\ndef total(xs): return 0",
    ),
    "def all": ("Write f", "assert all(x == 1 for x in f())", "def all(x): return True\ndef f(): return [2]"),
    "def expected": ("Write f", "expected = 4\nassert f(2) == expected", "expected = 5\ndef f(x): return 5"),
    "def approx": (
        "Write f",
        "from pytest import approx\nassert f(2) == approx(4)",
        "def approx(x): return 5\ndef f(x): return 5",
    ),
    "from solution max": ("Write it", "from solution import max\nassert max([1,2]) == 2", "x=1"),
    "solution max": ("Write it", "import solution\nassert solution.max([1,2]) == 2", "x=1"),
    "solution f own": (
        "Write it",
        "import solution\ndef f(x): return 4\nassert solution.f(2) == f(2)",
        "def f(x): return 5",
    ),
    "solution oracle": (
        "Write total",
        "import solution\nassert solution.max([1,2]) == max([1,2])",
        "def max(x): return 5",
    ),
    "inherit tests wrong": (
        "Write f",
        "class Base:\n    def test_a(self): assert f(2) == 4\nclass TestF(Base):\n    pass",
        "def f(x): return 5",
    ),
}
VERIFIED: dict[str, Case] = {
    "inherited case": (
        "Write double(x)",
        "import unittest\nclass Base(unittest.TestCase):\n    n = 3\n    def test_x(self): self.assertEqual(double(self.n), 2 * self.n)\nclass T(Base):\n    n = 4",
        "def double(x): return 2 * x",
    ),
    "raised by hand": (
        "Write double(x)",
        "if double(2) != 4: raise AssertionError('no')",
        "def double(x): return 4",
    ),
    "max right": (
        "Write max(numbers)",
        "assert max([4, 8, 15]) == 15",
        "def max(xs):\n    m=xs[0]\n    for x in xs:\n        m = x if x>m else m\n    return m",
    ),
    "key len": (
        "Write f",
        "assert sorted(f(), key=len) == ['a','bb']",
        "len = lambda x: 1\ndef f(): return ['bb','a']",
    ),
    "own sum asked": (
        "Write total(xs), which gives what sum(xs) gives",
        "assert total([1,2]) == sum([1,2])",
        "def total(xs):\n  t=0\n  for x in xs: t+=x\n  return t",
    ),
    "loop": ("Write f", "for x in f(): assert x > 0", "def f(): return [1,2]"),
    "raises": (
        "Write f",
        "import pytest\nwith pytest.raises(ValueError):\n    f(-1)",
        "def f(x): raise ValueError",
    ),
    "raises value": (
        "Write f",
        "import pytest\nwith pytest.raises(ValueError) as e:\n    f(-1)\nassert 'neg' in str(e.value)",
        "def f(x): raise ValueError('neg')",
    ),
    "try raises": (
        "Write f",
        "try:\n    f(-1)\n    assert False\nexcept ValueError:\n    pass",
        "def f(x): raise ValueError",
    ),
    "learner sum": ("Add the numbers", "assert sum == 6", "sum = 0\nfor i in [1,2,3]: sum += i"),
    "learner list index": ("Make a list", "assert list[0] == 1", "list = [1,2]"),
    "learner input": ("x", "assert input == 5", "input = 5"),
    "learner output": ("x", "assert output == 5", "output = 5"),
    "learner arith": ("Add", "assert sum + 1 == 7", "sum = 6"),
    "solution f own right": (
        "Write it",
        "import solution\ndef f(x): return 4\nassert solution.f(2) == f(2)",
        "def f(x): return 4",
    ),
    "patch solution": (
        "Write it",
        "from unittest.mock import patch\ndef test_it():\n    with patch('solution.fetch', return_value=3):\n        import solution\n        assert solution.total() == 6",
        "def fetch(): return 1\ndef total(): return 2*fetch()",
    ),
    "monkeypatch solution": (
        "Write it",
        "import solution\ndef test_it(monkeypatch):\n    monkeypatch.setattr(solution, 'RATE', 3)\n    assert solution.total() == 6",
        "RATE = 1\ndef total(): return 2*RATE",
    ),
    "set solution": (
        "Write it",
        "import solution\nsolution.RATE = 3\nassert solution.total() == 6",
        "RATE = 1\ndef total(): return 2*RATE",
    ),
    "own node": (
        "Write f",
        "class Node:\n    def __init__(self, v, n=None): self.v, self.next = v, n\nassert total(Node(1, Node(2))) == 3",
        "def total(n):\n    t = 0\n    while n:\n        t += n.v\n        n = n.next\n    return t",
    ),
    "own dataclass": (
        "Write f",
        "from dataclasses import dataclass\n@dataclass\nclass P:\n    x: int\n    y: int\nassert norm(P(3, 4)) == 5",
        "def norm(p): return (p.x**2+p.y**2)**.5",
    ),
    "own mock": (
        "Write f",
        "from unittest.mock import Mock\nm = Mock()\nm.get.return_value = 3\nassert f(m) == 6\nm.get.assert_called_once_with('a')",
        "def f(m): return 2*m.get('a')",
    ),
    "reverse list": (
        "Write rev",
        "class Node:\n    def __init__(self, v, n=None): self.v, self.next = v, n\nh = rev(Node(1, Node(2)))\nassert h.v == 2 and h.next.v == 1 and h.next.next is None",
        "def rev(n):\n    prev = None\n    while n is not None:\n        n.next, prev, n = prev, n, n.next\n    return prev",
    ),
    "eq objects": (
        "Write f",
        "from dataclasses import dataclass\n@dataclass\nclass P:\n    n: str\nassert f([P('a'), P('b')]) == P('b')",
        "def f(ps): return ps[-1]",
    ),
    "set attr": (
        "Write f",
        "class Box: pass\nb = Box()\nb.v = 1\nf(b)\nassert b.v == 2",
        "def f(b): b.v = 2",
    ),
    "inherit tests": (
        "Write f",
        "class Base:\n    def test_a(self): assert f(2) == 4\nclass TestF(Base):\n    pass",
        "def f(x): return 4",
    ),
    "unittest setup": (
        "Write f",
        "import unittest\nclass T(unittest.TestCase):\n    def setUp(self):\n        self.x = f(2)\n    def test_a(self):\n        self.assertEqual(self.x, 4)",
        "def f(x): return 4",
    ),
    "unittest setup of a class": (
        "Write f",
        "import unittest\nclass T(unittest.TestCase):\n    @classmethod\n    def setUpClass(cls):\n        cls.x = f(2)\n    def test_a(self):\n        self.assertEqual(self.x, 4)",
        "def f(x): return 4",
    ),
    "setup class": (
        "Write f",
        "class TestA:\n    @classmethod\n    def setup_class(cls):\n        cls.x = f(2)\n    def test_x(self):\n        assert self.x == 4",
        "def f(x): return 4",
    ),
    "setup module arg": (
        "Write f",
        "def setup_module(module):\n    module.x = f(2)\ndef test_x():\n    assert x == 4",
        "def f(x): return 4",
    ),
    "mutates": ("Write f", "xs = [3,1,2]\nf(xs)\nassert xs == [1,2,3]", "def f(xs): xs.sort()"),
    "alias": ("Write f", "xs = [3,1,2]\nys = xs\nf(xs)\nassert ys == [1,2,3]", "def f(xs): xs.sort()"),
    "nested mutate": (
        "Write f",
        "xs = [3,1,2]\nd = {'a': xs}\nf(d['a'])\nassert xs == [1,2,3]",
        "def f(xs): xs.sort()",
    ),
    "callback": ("Write f", "seen = []\nf(seen.append)\nassert seen == [1]", "def f(cb): cb(1)"),
    "file path": (
        "Write 42 to out.txt",
        "from pathlib import Path\ndef test_it():\n    text = Path('out.txt').read_text()\n    assert text == '42'",
        "open('out.txt','w').write('42')",
    ),
    "capsys": (
        "Write hello()",
        "def test_it(capsys):\n    hello()\n    assert capsys.readouterr().out == 'hi\\n'",
        "def hello(): print('hi')",
    ),
    "patch print": (
        "Write hello()",
        "from unittest.mock import patch\nwith patch('builtins.print') as p:\n    hello()\n    p.assert_called_once_with('hi')",
        "def hello(): print('hi')",
    ),
    "redirect": (
        "Write hello()",
        "import io, contextlib\nbuf = io.StringIO()\nwith contextlib.redirect_stdout(buf):\n    hello()\nassert buf.getvalue() == 'hi\\n'",
        "def hello(): print('hi')",
    ),
    "helper ret": ("Write f", "def get():\n    return f(2)\nassert get() == 4", "def f(x): return 4"),
    "global in": ("Write f", "assert 'f' in globals()", "def f(): pass"),
    "seed": (
        "Write f",
        "import random\nrandom.seed(1)\na = f()\nrandom.seed(1)\nassert f() == a",
        "import random\ndef f(): return random.random()",
    ),
}
UNVERIFIED: dict[str, Case] = {
    "misspelt by the test": ("Write double(x)", "assert doubel(2) == 4", "def double(x): return 2 * x"),
    "a file that only the test names": (
        "Write double(x)",
        "def test_a():\n    data = open('missing.txt').read()\n    assert double(data) == data * 2",
        "def double(x): return 2 * x",
    ),
    "forge method": (
        "Write f",
        "class Box:\n    def __init__(self): self.v = 1\n    def ok(self): return self.v == 2\nb = Box()\nf(b)\nassert b.ok()",
        "def f(b): b.ok = lambda: True",
    ),
    "sum word": ("Compute the sum of a list", "assert sum([1,2]) == 3", "print(3)"),
    "own import": (
        "What is the mean?",
        "from statistics import mean\nassert mean([1, 3]) == 2",
        "print('hello')",
    ),
    "access true": ("Write f", "f(3)\nassert True", "def f(x): return x"),
    "access name": ("Write f", "x = f\nassert 1 == 1", "def f(x): return x"),
    "access rebind func": (
        "Write f",
        "def test_f():\n    y = f(3)\n    y = 5\n    assert y == 5",
        "def f(x): return x",
    ),
    "raises own": (
        "Write f",
        "import pytest\nwith pytest.raises(ValueError):\n    int('x')",
        "def f(): return []",
    ),
    "raises then": (
        "Write f",
        "import pytest\nwith pytest.raises(ValueError):\n    f(1)\n    int('x')",
        "def f(x): return 1",
    ),
    "or true": ("Write f", "assert True or f(3)", "def f(x): return x"),
    "one lacks": ("Write f", "assert f(3) == 3\nassert sum([1]) == 1", "def f(x): return x"),
    "helper unused": (
        "Write f",
        "def check(v, w):\n    assert v == w\nf(2)\ncheck(4, 4)",
        "def f(x): return 4",
    ),
    "unittest noop": (
        "Write f",
        "import unittest\nclass T(unittest.TestCase):\n    def test_a(self):\n        f(2)\n        self.assertTrue(True)",
        "def f(x): return 4",
    ),
    "test undef": ("Write f", "assert f == wanted", "def f(x): return x"),
    "test import": (
        "Write f",
        "from faker import Faker\nassert f(Faker().seed()) == 4",
        "def f(x): return 4",
    ),
    "vacuous loop": ("Write f", "for x in f(): assert x > 0", "def f(): return []"),
    "deepcopy node": (
        "Write dup",
        "class Node:\n    def __init__(self, v): self.v = v\nassert dup(Node(1)).v == 1",
        "import copy\ndef dup(n): return copy.deepcopy(n)",
    ),
    "forge mock2": (
        "Write f",
        "from unittest.mock import Mock\nm = Mock()\nf(m)\nassert m.send.called",
        "def f(m): m.send.called = True",
    ),
}


@pytest.mark.parametrize("case", FAILED.values(), ids=FAILED)
def test_a_program_that_lacks_what_is_asked_for_fails(sandbox: SandboxExecutor, case: Case) -> None:
    assert verdict(sandbox, *case).status == "failed"


@pytest.mark.parametrize("case", VERIFIED.values(), ids=VERIFIED)
def test_a_right_program_is_verified_in_whatever_way_it_is_tested(
    sandbox: SandboxExecutor, case: Case
) -> None:
    decided = verdict(sandbox, *case)
    assert decided.status == "verified", decided.reason


@pytest.mark.parametrize("case", UNVERIFIED.values(), ids=UNVERIFIED)
def test_tests_that_decide_nothing_verify_and_blame_nothing(sandbox: SandboxExecutor, case: Case) -> None:
    assert verdict(sandbox, *case).status == "unverified"


def test_a_test_that_decides_nothing_is_named(sandbox: SandboxExecutor) -> None:
    tests = "assert f(3) == 3\nassert sum([1]) == 1"
    reason = verdict(sandbox, "Write f", tests, "def f(x): return x").reason
    assert reason.startswith("The test in line 2 does not use the program.")


@pytest.mark.parametrize(
    "test",
    [
        "for x in f(): assert x > 0",
        "assert all(x > 0 for x in f())",
        "assert not any(x < 0 for x in f())",
        "assert all(a == b for a, b in zip(f(), [1, 2, 3]))",
        "def test_f():\n    assert all([x > 0 for x in f()])",
    ],
)
def test_an_assertion_about_each_of_no_items_counts_for_none(sandbox: SandboxExecutor, test: str) -> None:
    decided = verdict(sandbox, "Write f", test, "def f(): return []")
    assert decided.status == "unverified"
    assert "calls the program and reaches no assertion that holds." in decided.reason
    assert verdict(sandbox, "Write f", test, "def f(): return [1, 2, 3]").status == "verified"


def test_tests_that_extend_a_class_of_the_program_are_refused() -> None:
    with pytest.raises(InputError, match="extends 'Shape', which they do not define"):
        expect("class Square(Shape): pass\nassert Square().describe() == 'square'")


LOST = {
    "a loop": ("def a():\n    while True: pass", "did not end"),
    "a computation in C": ("def a(): return 10**10**9", "did not end"),
    "what catches all": (
        "def a():\n    while True:\n        try:\n            while True: pass\n        except BaseException: pass",
        "did not end",
    ),
    "an exit": ("import os\ndef a(): os._exit(0)", "ended the program"),
    "a signal": ("import os\ndef a(): os.kill(os.getpid(), 9)", "ended the program"),
}


@pytest.mark.kernel_sandbox
@pytest.mark.parametrize(("code", "said"), LOST.values(), ids=LOST)
def test_a_test_that_ends_its_run_costs_no_other_test(sandbox: SandboxExecutor, code: str, said: str) -> None:
    tests = "assert b() == 1\nassert a() == 1\ndef test_b(): assert b() == 1"
    decided = verdict(sandbox, "Write a and b", tests, f"{code}\ndef b(): return 1")
    assert [result.status for result in decided.tests] == ["pass", "fail", "pass"]
    assert decided.reason.startswith(f"The test in line 2 {said}")


@pytest.mark.kernel_sandbox
def test_each_test_has_processor_time_of_its_own(sandbox: SandboxExecutor) -> None:
    code = "import time\ndef a():\n    while time.process_time() % 0.4 < 0.3: pass\n    return 1"
    assert verdict(sandbox, "Write a", "\n".join(["assert a() == 1"] * 4), code).status == "verified"


@pytest.mark.slow
@pytest.mark.kernel_sandbox
def test_a_program_that_only_waits_is_not_blamed(sandbox: SandboxExecutor) -> None:
    code = "import time\ndef a(): time.sleep(60)"
    decided = verdict(sandbox, "Write a", "assert a() == 1", code)
    assert (decided.status, "or the machine is busy" in decided.reason) == ("unverified", True)


@pytest.mark.slow
@pytest.mark.kernel_sandbox
def test_a_failure_wins_over_a_later_test_that_only_waits(sandbox: SandboxExecutor) -> None:
    tests = (
        "import time, unittest\nclass T(unittest.TestCase):\n    def test_a(self): self.assertEqual(f(5), 1)\n"
        "    def test_b(self):\n        time.sleep(60)\n        self.assertEqual(f(1), 1)"
    )
    decided = verdict(sandbox, "Write f", tests, "def f(n): return n")
    assert (decided.status, [result.status for result in decided.tests]) == ("failed", ["fail", "error"])


@pytest.mark.kernel_sandbox
def test_no_test_takes_the_end_of_the_program_for_an_exception(sandbox: SandboxExecutor) -> None:
    tests = "import pytest\ndef test_a():\n    with pytest.raises(Exception):\n        a()"
    assert verdict(sandbox, "Write a", tests, "import os\ndef a(): os._exit(0)").status == "failed"
