"""Tests as teachers write them: right programs pass, wrong ones fail, and broken tests are not blamed on programs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from code_chains.chains import EvaluateChain
from code_chains.executors import Limits, SandboxExecutor
from code_chains.state import Verdict

PLOT = "import matplotlib.pyplot as plt\n"


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxExecutor]:
    with SandboxExecutor(limits=Limits(seconds=20), min_idle=2) as sandbox:
        yield sandbox


def verdict(
    sandbox: SandboxExecutor, code: str, tests: Any = None, examples: Any = None, **given: Any
) -> Verdict:
    execution = sandbox.run(code, stdin=given.get("stdin"))
    state = {"code": code, "query": "", "execution": execution, "tests": tests, "examples": examples, **given}
    decided: Verdict = EvaluateChain(executor=sandbox).invoke(state)["verdict"]
    return decided


NUMBERS: dict[str, tuple[str, str, Any]] = {
    "half of a whole number": ("failed", "def f(n): return n + .5", [(10**10, 10**10)]),
    "a whole number as a float": ("verified", "def f(n): return float(n)", [(3, 3)]),
    "a number for a truth value": ("failed", "def f(n): return 1 - n % 2", [(2, True)]),
    "a nested number for a truth value": ("failed", "def f(n): return [{'a': 1}]", [(2, [{"a": True}])]),
    "a truth value for a number": ("failed", "def f(n): return n % 2 == 0", [(2, 1)]),
    "a truth value of NumPy": (
        "verified",
        "import numpy\ndef f(n): return numpy.int64(n) == 2",
        "assert f(2) == True",
    ),
    "a rounded sum": ("verified", "def f(): return 0.1 + 0.2", "assert f() == 0.3"),
    "a nested rounded sum": (
        "verified",
        "def f(): return [0.1 + 0.2, {'a': 0.3}]",
        "assert f() == [0.3, {'a': 0.1 * 3}]",
    ),
    "a sum in a variable": ("verified", "def f(): return 0.1 + 0.2", "x = f()\nassert x == 0.3 and x != 0.4"),
    "a sum in a chain": ("verified", "def f(): return 0.1 + 0.2", "assert 0.3 == f() == 0.3"),
    "another number": ("failed", "def f(): return 0.3000001", "assert f() == 0.3"),
    "a rounded sum that is to differ": ("failed", "def f(): return 0.1 + 0.2", "assert f() != 0.3"),
    "a number of a case": (
        "verified",
        "def f(): return 0.1 + 0.2",
        "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(f(), 0.3)",
    ),
    "one of a thousand numbers": ("plausible", "print(*range(1000))", "assert '120' in output"),
    "a part of a number": ("failed", "print(1200)", "assert '120' in output"),
    "a number in a sentence": ("verified", "print('sum: 120, mean: 24.')", "assert '120' in output"),
    "the beginning of a number": ("verified", "print(3.14159)", "assert '3.14' in output"),
}


@pytest.mark.rows(4)
@pytest.mark.parametrize(("status", "code", "given"), NUMBERS.values(), ids=NUMBERS)
def test_numbers_are_compared_up_to_rounding_and_whole_ones_exactly(
    sandbox: SandboxExecutor, status: str, code: str, given: Any
) -> None:
    tests, examples = (given, None) if isinstance(given, str) else (None, given)
    assert verdict(sandbox, code, tests, examples).status == status


INPUTS: dict[str, tuple[str, str, Any]] = {
    "a program": ("verified", "n = int(input('n? '))\nprint(n * 2)", [{"stdin": "21\n", "output": "n? 42"}]),
    "a program that guesses": (
        "failed",
        "input()\nprint(42)",
        [{"stdin": "3", "output": "6"}, {"stdin": "21", "output": "42"}],
    ),
    "a program that reads everything": (
        "verified",
        "import sys\nprint(sum(map(int, sys.stdin)))",
        [{"stdin": "1\n2\n", "output": "3"}],
    ),
    "a program that wants more": ("failed", "print(input() + input())", [{"stdin": "3", "output": "3"}]),
    "a function": (
        "verified",
        "def f(): return int(input()) * 2",
        [{"args": [], "stdin": "21\n", "expected": 42}],
    ),
    "patched input": (
        "verified",
        "def f(): return input('? ').upper()",
        "from unittest.mock import patch\nwith patch('builtins.input', return_value='a'):\n    assert f() == 'A'",
    ),
    "answers one by one": (
        "verified",
        "def f(): return input() + input()",
        "def test(monkeypatch):\n    answers = iter('12')\n"
        "    monkeypatch.setattr('builtins.input', lambda *_: next(answers))\n"
        "    assert f() == '12'",
    ),
    "a stream that is read on": (
        "verified",
        "def f(): return input()",
        "import io, sys\nsys.stdin = io.StringIO('1\\n2\\n')\nassert f() == '1'\nassert f() == '2'",
    ),
}


@pytest.mark.rows(3)
@pytest.mark.parametrize(("status", "code", "given"), INPUTS.values(), ids=INPUTS)
def test_programs_and_functions_get_input(
    sandbox: SandboxExecutor, status: str, code: str, given: Any
) -> None:
    tests, examples = (given, None) if isinstance(given, str) else (None, given)
    assert verdict(sandbox, code, tests, examples).status == status


def test_tests_of_a_program_give_it_the_input_of_the_question(sandbox: SandboxExecutor) -> None:
    found = verdict(sandbox, "print(int(input()) * 2)", "assert output == '42'", stdin="21")
    assert found.status == "verified"


PRINTED: dict[str, tuple[str, str, Any]] = {
    "output after a call": (
        "verified",
        "def f(n): print('Hello', n)",
        "f('Ana'); assert 'Hello Ana' in output",
    ),
    "captured output": (
        "verified",
        "def f(n): print('Hello', n)",
        "def test(capsys):\n    f('Ana')\n    assert capsys.readouterr().out == 'Hello Ana\\n'",
    ),
    "captured output of the test itself": (
        "verified",
        "def f(n): return n + 1",
        "def test(capsys):\n    print(f(1))\n    assert capsys.readouterr().out == '2\\n'",
    ),
    "captured output, one look after the other": (
        "verified",
        "def f(n): print(n)",
        "def test(capsys):\n    f(1)\n    assert capsys.readouterr().out == '1\\n'\n    f(2)\n    print('-')\n"
        "    out, err = capsys.readouterr()\n    assert (out, err) == ('2\\n-\\n', '')",
    ),
    "captured errors": (
        "verified",
        "import sys\ndef f(n): print('no', n, file=sys.stderr)",
        "def test(capsys):\n    f(1)\n    assert capsys.readouterr() == ('', 'no 1\\n')",
    ),
    "captured errors that are output": (
        "failed",
        "def f(n): print('no', n)",
        "def test(capsys):\n    f(1)\n    assert capsys.readouterr().err == 'no 1\\n'",
    ),
    "output that another test captured": (
        "failed",
        "def f(n): print(n)",
        "def test_1(capsys):\n    f(1)\n\ndef test_2(capsys):\n    assert '1' in capsys.readouterr().out",
    ),
    "what a test prints is not what the program printed": (
        "failed",
        "def f(n): return n",
        "print(f(7))\nassert '7' in output",
    ),
    "a missing word": (
        "failed",
        "def f(): print('hello')",
        "def test(capsys):\n    f()\n    assert 'bye' in capsys.readouterr().out",
    ),
    "an example": ("verified", "def f(n): print('Hello', n)", [{"args": ["Ana"], "output": "hello ana"}]),
    "a wrong word": ("failed", "def f(n): print('Hallo', n)", [{"args": ["Ana"], "output": "Hello Ana"}]),
    "a value and its output": (
        "verified",
        "def f():\n    print(1)\n    return 2",
        [{"args": [], "expected": 2, "output": "1"}],
    ),
    "a returned value": (
        "failed",
        "def f(n): return n",
        "def test(capsys):\n    f(1)\n    assert '1' in capsys.readouterr().out",
    ),
    "blanks": ("verified", "print('0 ')\nprint('1 ')", "assert output == '0\\n1'"),
    "blanks that count": ("failed", "print('0 ')", "assert output == '0\\n'  # exact"),
    "capitals": ("verified", "print()\nprint('hello world')", [{"output": "Hello World"}]),
    "capitals that count": ("failed", "print('hello')", [{"output": "Hello\n", "compare": "exact"}]),
    "rounding": ("verified", "print(0.1 + 0.2)", [{"output": "0.3"}]),
    "another order": ("failed", "print(5, 4, 3)", [{"output": "3 4 5"}]),
}


@pytest.mark.rows(3)
@pytest.mark.parametrize(("status", "code", "given"), PRINTED.values(), ids=PRINTED)
def test_what_was_printed_is_compared_by_words(
    sandbox: SandboxExecutor, status: str, code: str, given: Any
) -> None:
    tests, examples = (given, None) if isinstance(given, str) else (None, given)
    assert verdict(sandbox, code, tests, examples).status == status


def test_exact_output_that_differs_in_blanks_says_so(sandbox: SandboxExecutor) -> None:
    found = verdict(sandbox, "print('a  b')", examples=[{"output": "a b\n", "compare": "exact"}])
    assert "check your blanks" in found.reason


FILES: dict[str, tuple[str, str, str]] = {
    "a file": ("verified", "open('o.txt', 'w').write('1')", "assert open('o.txt').read() == '1'"),
    "no file": ("failed", "print(1)", "assert open('o.txt').read() == '1'"),
    "a file of a folder": (
        "verified",
        "import pathlib\npathlib.Path('d').mkdir()\npathlib.Path('d/o.csv').write_text('a\\n2')",
        "import os\nassert os.listdir('d') == ['o.csv']\nassert open('d/o.csv').read().split() == ['a', '2']",
    ),
    "a file of the tests": (
        "verified",
        "def f(a, b): open(b, 'w').write(open(a).read().upper())",
        "open('i', 'w').write('a')\nf('i', 'o')\nassert open('o').read() == 'A'",
    ),
    "a temporary folder": (
        "verified",
        "def f(folder): (folder / 'a').write_text('x')",
        "def test(tmp_path):\n    f(tmp_path)\n    assert (tmp_path / 'a').read_text() == 'x'",
    ),
    "a file that is gone": (
        "verified",
        "import os\ndef f(): os.remove('x')",
        "import os\nopen('x', 'w').close()\nf()\nassert not os.path.exists('x')",
    ),
    "a folder that tests enter": (
        "verified",
        "import os\ndef save(): open('o', 'w').write('x')\ndef names(): return sorted(os.listdir())",
        "def test_saves(tmp_path, monkeypatch):\n    (tmp_path / 'in').write_text('')\n"
        "    monkeypatch.chdir(tmp_path)\n    save()\n    assert (tmp_path / 'o').read_text() == 'x'\n"
        "    assert names() == ['in', 'o']\n"
        "def test_is_back():\n    assert 'o' not in names()",
    ),
    "a module of the program": (
        "failed",
        "open('json.py', 'w').write('def load(_): return 1')\nopen('o', 'w').write('2')",
        "import json\nassert json.load(open('o')) == 1",
    ),
    "a file of the tests that it guesses": (
        "failed",
        "def f(): open('right', 'w').write('0')\nopen('o', 'w').write('0')",
        "open('right', 'w').write('5')\nf()\nassert open('o').read() == open('right').read()",
    ),
}


@pytest.mark.rows(3)
@pytest.mark.parametrize(("status", "code", "tests"), FILES.values(), ids=FILES)
def test_tests_see_files_of_the_program(sandbox: SandboxExecutor, status: str, code: str, tests: str) -> None:
    assert verdict(sandbox, code, tests).status == status


def test_a_program_does_not_change_files_that_were_given(sandbox: SandboxExecutor) -> None:
    code = "import os\nos.remove('a.txt')\nopen('a.txt', 'w').write('0')\nprint(0)"
    tests = "assert output.strip() == open('a.txt').read()"
    assert verdict(sandbox, code, tests, files={"a.txt": b"5"}).status == "failed"


FIGURES = {
    "the current axes": ("plt.plot([1, 2])\nplt.title('Sales')", "plt.gca().get_title() == 'Sales'"),
    "what was shown": (
        "fig, ax = plt.subplots()\nax.set_title('T')\nplt.show()",
        "plt.gcf().axes[0].get_title() == 'T'",
    ),
    "what was saved": (
        "plt.plot([1, 2])\nplt.ylabel('y')\nplt.savefig('p.png')",
        "plt.gca().get_ylabel() == 'y'",
    ),
    "its lines": ("plt.plot([1, 2], [3, 4])", "list(plt.gca().lines[0].get_ydata()) == [3, 4]"),
}


@pytest.mark.rows(1)
@pytest.mark.parametrize(("code", "test"), FIGURES.values(), ids=FIGURES)
def test_tests_see_figures(sandbox: SandboxExecutor, code: str, test: str) -> None:
    pytest.importorskip("matplotlib")
    assert verdict(sandbox, PLOT + code, f"{PLOT}assert {test}").status == "verified"
    assert verdict(sandbox, PLOT + "plt.plot([5])", f"{PLOT}assert {test}").status == "failed"


SEEN = {
    "chance": (
        "import random\ndef f(): return random.random()",
        "import random\nrandom.seed(1)\na = f()\nrandom.seed(1)\nassert a == random.random()",
    ),
    "a helper called max": (
        "def max(xs):\n    m = xs[0]\n    for x in xs: m = x if x > m else m\n    return m\n"
        "def f(xs): return max(xs) - min(xs)",
        "assert f([1, 5]) == max([1, 5]) - min([1, 5])",
    ),
    "subclasses": ("class A: pass\nclass B(A): pass", "assert issubclass(B, A) and not issubclass(A, B)"),
    "subclasses of Python's": ("class L(list): pass", "assert issubclass(L, list)"),
    "a signature": (
        "def f(a: int, b='x'): return a",
        "import inspect\np = inspect.signature(f).parameters\nassert list(p) == ['a', 'b']\nassert p['a'].annotation is int",
    ),
    "source": (
        "def f(n): return n and n * f(n - 1) or 1",
        "import inspect\nassert 'while' not in inspect.getsource(f)",
    ),
    "kinds": (
        "def f(): yield 1",
        "import inspect\nassert inspect.isgeneratorfunction(f) and not inspect.isclass(f)",
    ),
    "truth": (
        "class S:\n    def __init__(s): s.x = []\n    def push(s, v): s.x.append(v)\n    def __bool__(s): return bool(s.x)\n"
        "def make(): return S()",
        "assert not make()\ns = make()\ns.push(1)\nassert s",
    ),
    "its own experiments": ("def f(x): return x + 1\nprint(undefined)", "assert f(1) == 2"),
    "frames": (
        "import pandas\ndef f(): return pandas.DataFrame({'a': [1]})",
        "import pandas\nfrom pandas.testing import assert_frame_equal\n"
        "assert_frame_equal(f(), pandas.DataFrame({'a': [1]}))",
    ),
}


@pytest.mark.rows(4)
@pytest.mark.parametrize(("code", "tests"), SEEN.values(), ids=SEEN)
def test_right_programs_pass(sandbox: SandboxExecutor, code: str, tests: str) -> None:
    assert verdict(sandbox, code, tests).status == "verified"


def test_a_program_that_ends_early_lacks_what_comes_later(sandbox: SandboxExecutor) -> None:
    found = verdict(sandbox, "print(1 / 0)\ndef f(x): return x", "assert f(1) == 1")
    assert (found.status, "ZeroDivisionError" in found.reason) == ("failed", True)


FORMS = {
    "an import from the solution": "from solution import double\nassert double(2) == 4",
    "the solution as a module": "import solution as s\nassert s.double(2) == 4",
    "another name": "from main import double as d\nassert d(2) == 4",
    "a list": ["assert double(2) == 4", "assert double('a') == 'aa'"],
    "a doctest": ">>> double(2)\n4\n>>> for n in range(2):\n...     print(double(n))\n0\n2\n",
    "an exception of a doctest": ">>> double(None)\nTraceback (most recent call last):\n    ...\nTypeError: ...\n",
    "what is set up": "def setup_function():\n    global n\n    n = 2\ndef test():\n    assert double(n) == 4",
    "a class that is set up, without a decorator": (
        "class TestDouble:\n    def setup_class(cls):\n        cls.n = 2\n"
        "    def test(self):\n        assert double(self.n) == 4"
    ),
    "a module that is set up": "def setup_module(module):\n    global n\n    n = 2\ndef test():\n    assert double(n) == 4",
    "methods that are set up": (
        "class TestD:\n    def setup_method(self): self.n = 2\n    def test(self): assert double(self.n) == 4"
    ),
    "a fixture of a class": (
        "import pytest\nclass TestD:\n    @pytest.fixture\n    def n(self): return 2\n"
        "    def test(self, n): assert double(n) == 4"
    ),
    "a fixture for all": (
        "import pytest\n@pytest.fixture(autouse=True)\ndef n():\n    global k\n    k = 2\ndef test(): assert double(k) == 4"
    ),
    "a label": "import pytest\n@pytest.mark.slow\ndef test(): assert double(2) == 4",
}


@pytest.mark.rows(3)
@pytest.mark.parametrize("tests", FORMS.values(), ids=FORMS)
def test_tests_come_in_many_forms(sandbox: SandboxExecutor, tests: Any) -> None:
    assert verdict(sandbox, "def double(x): return 2 * x", tests).status == "verified"
    assert verdict(sandbox, "def double(x): return 5", tests).status == "failed"


BROKEN = {
    "a helper that nobody defines": "assert f(helper(2)) == 2",
    "a key": "expected = {}\nassert f(2) == expected['k']",
    "a module": "import nosuchmodule\nassert f(2) == 2",
    "a name of a library": "import math\nassert f(4) == math.sqroot(16)",
    "a literal in a function": "def test():\n    data = {'a': 1}\n    assert f(data['b']) == 1",
    "a case": "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(f({}['x']), 1)",
}


@pytest.mark.rows(2)
@pytest.mark.parametrize("tests", BROKEN.values(), ids=BROKEN)
def test_a_broken_test_is_not_the_programs_fault(sandbox: SandboxExecutor, tests: str) -> None:
    found = verdict(sandbox, "def f(x): return x", tests)
    assert (found.status, found.tests[-1].status) == ("unverified", "error")
    assert "is broken" in found.reason


BLAMED = {
    "a sum with None": ("def f(x): return None", "assert f(2) + 1 == 3"),
    "a key that it leaves out": ("def f(x): return {}", "r = f(2)\nassert r['k'] == 3"),
    "text that is no number": ("def f(x): return 'a'", "assert int(f(2)) == 3"),
    "nothing to unpack": ("def f(x): return []", "a, b = f(2)\nassert a == 3"),
}


@pytest.mark.rows(1)
@pytest.mark.parametrize(("code", "tests"), BLAMED.values(), ids=BLAMED)
def test_an_error_that_follows_from_a_result_is_the_programs(
    sandbox: SandboxExecutor, code: str, tests: str
) -> None:
    assert verdict(sandbox, code, tests).status == "failed"


@pytest.mark.parametrize(
    ("code", "said"),
    [("def avarage(x): return x", "Define 'average'; there is 'avarage'."), ("x = 1", "Define 'average'.")],
)
def test_what_is_missing_is_named(sandbox: SandboxExecutor, code: str, said: str) -> None:
    assert verdict(sandbox, code, "assert average([1]) == 1").reason == said


def test_each_test_has_its_result(sandbox: SandboxExecutor) -> None:
    tests = "def test_a(): assert f(1) == 1\ndef test_b(): assert f(2) == 4\ndef test_c(): assert f(3) == 9"
    found = verdict(sandbox, "def f(x):\n    print(x)\n    return x", tests)
    assert [(result.name, result.status) for result in found.tests] == [
        ("test_a", "pass"),
        ("test_b", "fail"),
        ("test_c", "fail"),
    ]
    assert (found.tests[1].message, found.tests[1].output) == ("f(2) gave 2, expected 4", "2\n")
    assert found.reason == "2 of 3 tests failed: f(2) gave 2, expected 4; f(3) gave 3, expected 9."


def test_a_test_that_expects_an_error_in_vain_ends_no_other_one(sandbox: SandboxExecutor) -> None:
    tests = (
        "import pytest\ndef test_a():\n    with pytest.raises(ValueError): f(1)\n"
        "def test_b(): assert f(1) == 1\ndef test_c(): pytest.skip('later')\nassert f(2) == 2"
    )
    found = verdict(sandbox, "def f(x): return x", tests)
    assert {result.name: result.status for result in found.tests} == {
        "assert f(2) == 2": "pass",
        "test_a": "fail",
        "test_b": "pass",
        "test_c": "fail",
    }


UNUSUAL: dict[str, tuple[str, str, Any]] = {
    "an exception below one of its own": (
        "verified",
        "class BankError(Exception): pass\nclass TooPoor(BankError): pass\ndef f(): raise TooPoor('x')",
        "import pytest\ndef test():\n    with pytest.raises(TooPoor): f()",
    ),
    "the exception above it": (
        "verified",
        "class BankError(ValueError): pass\nclass TooPoor(BankError): pass\ndef f(): raise TooPoor('x')",
        "import pytest\ndef test():\n    with pytest.raises(BankError): f()\n    with pytest.raises(ValueError): f()",
    ),
    "another exception of its own": (
        "failed",
        "class BankError(Exception): pass\nclass TooPoor(BankError): pass\ndef f(): raise BankError('x')",
        "import pytest\ndef test():\n    with pytest.raises(TooPoor): f()",
    ),
    "a file in a new folder": (
        "verified",
        "def f(path, rows): path.write_text('\\n'.join(rows))",
        "def test(tmp_path):\n    place = tmp_path / 'out.txt'\n    f(place, ['a', 'b'])\n"
        "    assert place.read_text() == 'a\\nb'",
    ),
    "another content in a new folder": (
        "failed",
        "def f(path, rows): path.write_text('')",
        "def test(tmp_path):\n    place = tmp_path / 'out.txt'\n    f(place, ['a', 'b'])\n"
        "    assert place.read_text() == 'a\\nb'",
    ),
    "a variable with the name of a library's function": (
        "verified",
        "count = 0\ndef hit():\n    global count\n    count += 1",
        "hit()\nassert count == 1",
    ),
    "an array that is changed": (
        "failed",
        "def f(a):\n    a.sort()\n    return a",
        "import numpy as np\nv = np.array([3, 1])\nassert f(v).tolist() == [1, 3]\nassert v.tolist() == [3, 1]",
    ),
    "an array that is to be changed": (
        "verified",
        "def f(a): a *= 2",
        "import numpy as np\nv = np.array([3, 1])\nf(v)\nassert v.tolist() == [6, 2]",
    ),
    "a frame that is changed": (
        "failed",
        "def f(t):\n    t['a'] = 0\n    return len(t)",
        "import pandas as pd\nt = pd.DataFrame({'a': [3, 1]})\nassert f(t) == 2\nassert t['a'].tolist() == [3, 1]",
    ),
    "a frame that is to be changed": (
        "verified",
        "def f(t):\n    t['b'] = t['a'] * 2\n    t.drop(columns='a', inplace=True)",
        "import pandas as pd\nt = pd.DataFrame({'a': [3, 1]})\nf(t)\nassert t.to_dict('list') == {'b': [6, 2]}",
    ),
    "a series that is to be changed": (
        "verified",
        "def f(s): s.fillna(0, inplace=True)",
        "import pandas as pd\ns = pd.Series([1.0, None])\nf(s)\nassert s.tolist() == [1.0, 0.0]",
    ),
    "a queue and a counter that are to be changed": (
        "verified",
        "def f(q, c):\n    q.appendleft(0)\n    c['a'] += 1",
        "from collections import Counter, deque\nq, c = deque([1], maxlen=5), Counter('ab')\nf(q, c)\n"
        "assert list(q) == [0, 1] and c == {'a': 2, 'b': 1}",
    ),
    "a plot that is shown": (
        "verified",
        f"{PLOT}def f():\n    plt.plot([1, 2])\n    plt.title('Sales')\n    plt.show()",
        f"{PLOT}f()\nassert plt.gca().get_title() == 'Sales'",
    ),
}


@pytest.mark.parametrize(("status", "code", "tests"), UNUSUAL.values(), ids=UNUSUAL.keys())
def test_programs_in_unusual_but_right_style_pass(
    sandbox: SandboxExecutor, status: str, code: str, tests: Any
) -> None:
    assert verdict(sandbox, code, tests).status == status


def test_what_is_not_in_an_output_is_told_with_the_output(sandbox: SandboxExecutor) -> None:
    reason = verdict(sandbox, "def f(): return 'hello'", "assert 'bye' in f()").reason
    assert reason == "'bye' in 'hello' does not hold."


def test_an_object_that_looks_like_what_was_expected_is_told_by_its_class(sandbox: SandboxExecutor) -> None:
    code = "class Own:\n    def __repr__(self): return '[1]'\ndef f(): return Own()"
    assert verdict(sandbox, code, "assert f() == [1]").reason == (
        "f() gave [1], expected [1]: it is an object of the program's own class Own."
    )
