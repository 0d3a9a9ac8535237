from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_chains.chains import EvaluateChain
from code_chains.errors import InputError
from code_chains.executors import Limits, SandboxExecutor
from code_chains.verification.expectations import UntestableError, expect
from code_chains.verification.expectations.examples import parse_example

VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.tuples(inner, inner)
        | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def sandbox() -> Iterator[SandboxExecutor]:
    with SandboxExecutor(limits=Limits(seconds=5), preload=("numpy",), min_idle=2) as sandbox:
        yield sandbox


def said(
    sandbox: SandboxExecutor, code: str, tests: object = None, examples: Any = None, **given: str
) -> str:
    """What tests and examples say about a program; nothing if it holds."""
    error = sandbox.run_tests(code, expect(tests, examples).program(code, **given))[1].error
    return error.message if error else ""


def test_a_failed_assertion_says_what_it_got(sandbox: SandboxExecutor) -> None:
    assert said(sandbox, "def f(x): return x + 3", "assert f(2) == 4") == "f(2) gave 5, expected 4"


def test_arguments_of_a_call_in_a_loop_are_named(sandbox: SandboxExecutor) -> None:
    tests = "for n in (2, 7):\n    verb = [n]\n    assert f(verb) == n + 2"
    assert said(sandbox, "def f(x): return 4", tests) == "f(verb) gave 4, expected 9 for verb = [7]"


def test_a_comparison_says_what_it_found(sandbox: SandboxExecutor) -> None:
    assert said(sandbox, "def f(x): return x", "assert f(2) > 4") == "f(2) > 4 does not hold: it is 2"


def test_a_message_of_its_own_stays(sandbox: SandboxExecutor) -> None:
    assert said(sandbox, "def f(x): return x", "assert f(2) == 4, 'not doubled'") == "not doubled"


def test_tests_see_what_was_printed(sandbox: SandboxExecutor) -> None:
    assert said(sandbox, "print(15)", "assert '15' in output", output="15") == ""


def test_examples_are_tried_on_the_function_that_the_question_names(sandbox: SandboxExecutor) -> None:
    code = "def double(x): return 2 * x\ndef helper(x): return x"
    assert said(sandbox, code, examples=[(2, 4)], query="Write double(x).") == ""
    assert "helper(2) gave 2, expected 4" in said(sandbox, code, examples=[(2, 4)])


FORMS: dict[str, tuple[Any, str]] = {
    "several arguments": ([((2, 3), 5)], "def f(a, b): return a + b"),
    "a list is one argument": ([([2, 3], 5)], "def f(numbers): return sum(numbers)"),
    "JSON": ([{"args": [2], "kwargs": {"b": 3}, "expected": 5}], "def f(a, b): return a + b"),
    "an error": ([(0, ZeroDivisionError)], "def f(x): return 1 / x"),
    "a float": ([(3, 0.3)], "def f(x): return 0.1 * x"),
    "a tuple for a list": ([(3, [3, 4])], "def f(x): return x, x + 1"),
    "a set": ([("aab", {"a", "b"})], "def f(x): return set(x)"),
    "an array": ([(3, [0, 1, 2])], "import numpy\ndef f(x): return numpy.arange(x)"),
    "nothing": ([(3, None)], "def f(x): pass"),
    "a coroutine": ([(3, 4)], "async def f(x): return x + 1"),
}


@pytest.mark.parametrize(("examples", "code"), FORMS.values(), ids=FORMS)
def test_examples_come_in_many_forms(sandbox: SandboxExecutor, examples: Any, code: str) -> None:
    assert said(sandbox, code, examples=examples) == ""


def test_an_error_in_the_program_says_where(sandbox: SandboxExecutor) -> None:
    assert "in line 2 of the program, with n = 0" in said(
        sandbox, "def f(n):\n    return 1 / n", examples=[(0, 1)]
    )


def test_text_is_no_number(sandbox: SandboxExecutor) -> None:
    assert "gave '4', expected 4" in said(sandbox, "def f(x): return str(2 * x)", examples=[(2, 4)])


CALLED = {
    "a method of a class": "class TestDouble:\n    def test_two(self): assert double(2) == 4",
    "a coroutine": "async def test_double():\n    assert double(2) == 4",
    "a function with defaults": "def test_double(x=2):\n    assert double(x) == 4",
    "a case with its runner": (
        "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(double(2), 4)\n"
        "if __name__ == '__main__':\n    unittest.main()"
    ),
    "a function": "def test_double():\n    assert double(2) == 4",
    "a case of unittest": "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(double(2), 4)",
    "a case of unittest with decorators": (
        "import unittest\nfrom unittest import mock\nclass TestDouble(unittest.TestCase):\n"
        "    @mock.patch('os.getpid', lambda: 2)\n    def test(self):\n        import os\n"
        "        self.assertEqual(double(os.getpid()), 4)"
    ),
    "a context manager": "import numpy\ndef test():\n    numpy.testing.assert_allclose([double(2)], [4])",
}


@pytest.mark.rows(3)
@pytest.mark.parametrize("tests", CALLED.values(), ids=CALLED)
def test_what_others_would_call_is_called(sandbox: SandboxExecutor, tests: str) -> None:
    assert said(sandbox, "def double(x): return 2 * x", tests) == ""
    assert said(sandbox, "def double(x): return 3 * x", tests) != ""


UNCALLED = {
    "a check that nobody calls": "def check(candidate):\n    assert candidate(2) == 4\nassert double(0) == 0",
    "an exit": "def test_double():\n    assert double(2) == 4\nimport sys\nsys.exit()",
    "a test that is skipped": (
        "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(double(9), 18)\n"
        "    @unittest.skip('x')\n    def test_other(self): pass"
    ),
}


@pytest.mark.parametrize("tests", UNCALLED.values(), ids=UNCALLED)
def test_tests_that_were_not_all_run_do_not_pass(sandbox: SandboxExecutor, tests: str) -> None:
    code = "def double(x): return 2 * x"
    assert sandbox.run_tests(code, expect(tests).program(code))[1].status == "error"


@pytest.mark.parametrize(
    "tests", ["def test(n):\n    assert n", "import pytest\n@pytest.mark.xfail\ndef test():\n    assert 1"]
)
def test_tests_that_need_a_runner_are_refused(tests: str) -> None:
    with pytest.raises(InputError, match="a loop"):
        expect(tests)


@pytest.mark.parametrize(
    "tests",
    [
        "assert 1 + 1 == 2",
        "assert True",
        "def test_double():\n    assert (double(2) == 4, 'twice')",
        "import doctest\ndef double_two():\n    '''\n    >>> double(2)\n    4\n    '''\nassert not doctest.testmod()[0]",
        "'''\n>>> double(2)\n4\n'''\nassert double(0) == 0",
    ],
)
def test_tests_that_no_program_could_fail_are_refused(tests: str) -> None:
    with pytest.raises(InputError):
        expect(tests)


def test_a_failure_before_cleaning_up_stays_one(sandbox: SandboxExecutor) -> None:
    tests = "def test():\n    try:\n        assert f(1)\n        assert False\n    finally:\n        pass"
    assert said(sandbox, "def f(x): return x", tests) != ""


@pytest.mark.parametrize("tests", [0, False, {}, b""])
def test_tests_of_another_type_are_refused(tests: object) -> None:
    with pytest.raises(InputError, match="must be Python source"):
        expect(tests)


def test_the_lines_of_a_session_are_one_test(sandbox: SandboxExecutor) -> None:
    assert "expected '5'" in said(sandbox, "def f(x): return 2 * x", [">>> f(2)", "5"])


def test_an_entry_after_a_doctest_is_another_test(sandbox: SandboxExecutor) -> None:
    code, session = "def double(x): return 2 * x", ">>> double(2)\n4"
    assert said(sandbox, code, [session, "assert double(1) == 2"]) == ""
    assert "expected 3" in said(sandbox, code, [session, "assert double(1) == 3"])


@pytest.mark.parametrize("handler", ["except ValueError", "except Exception", "except"])
@pytest.mark.parametrize(("code", "passes"), [("float", True), ("str", False)])
def test_an_error_that_a_test_waits_for_is_an_assertion(
    sandbox: SandboxExecutor, code: str, passes: bool, handler: str
) -> None:
    tests = f"def test_error():\n    try:\n        f('x')\n        assert False\n    {handler}:\n        pass"
    assert (said(sandbox, f"def f(x): return {code}(x)", tests) == "") is passes


LIBRARIES = {
    "a module": (
        "class math:\n    isclose = staticmethod(lambda *a: True)",
        "assert math.isclose(area(1), 3.14)",
    ),
    "a class": (
        "class Counter:\n    def __init__(s, x): pass\n    def __eq__(s, o): return True",
        "assert Counter('a') == Counter('b')",
    ),
    "a builtin": ("def sum(x): return 0", "assert area(1) == sum([1, 2])"),
}


@pytest.mark.parametrize(("code", "tests"), LIBRARIES.values(), ids=LIBRARIES)
def test_a_program_does_not_stand_in_for_a_library(sandbox: SandboxExecutor, code: str, tests: str) -> None:
    program = f"{code}\ndef area(x): return 0"
    state = {
        "query": "Write area(x), the sum of all.",
        "code": program,
        "tests": tests,
        "execution": sandbox.run("1"),
    }
    assert EvaluateChain(executor=sandbox).invoke(state)["verdict"].status == "failed"


def test_an_import_that_the_tests_forgot_is_theirs(sandbox: SandboxExecutor) -> None:
    assert (
        said(
            sandbox,
            "def area(r): return 3.14159265 * r * r",
            "assert math.isclose(area(1), math.pi, rel_tol=1e-6)",
        )
        == ""
    )


def test_tiny_numbers_are_compared(sandbox: SandboxExecutor) -> None:
    assert "gave 0.0" in said(sandbox, "def f(x): return 0.0", examples=[(1, 1.602e-19)])
    assert "gave" in said(sandbox, "def f(x): return 10 ** 400", examples=[(1, 1e300)])


def test_examples_are_not_about_a_helper(sandbox: SandboxExecutor) -> None:
    assert (
        said(sandbox, "def area(x): return helper(x)\ndef helper(x): return 3 * x", examples=[(2, 6)]) == ""
    )
    assert (
        said(sandbox, "def double(x): return add(x, x)\ndef add(a, b): return a + b", examples=[(2, 4)]) == ""
    )


ORACLES: dict[str, tuple[str, str, str]] = {
    "sum": ("which gives what sum(xs) gives", "def sum(xs): return 7", "assert f([1, 2]) == sum([1, 2])"),
    "all": ("so that all(xs) holds", "def all(x): return True", "assert all(f([n]) == n for n in range(3))"),
    "abs": ("near in abs(d)", "def abs(x): return 0", "assert abs(f([1, 2]) - 3) < 1e-9"),
    "len": ("as many as len(xs)", "def len(x): return 7", "assert f([1, 2]) == len([1, 2])"),
    "sorted": ("like `sorted`", "sorted = lambda x: 7", "assert f([2, 1]) == sorted([2, 1])"),
    "isinstance": (
        "checked by isinstance(x, int)",
        "def isinstance(*a): return True",
        "assert isinstance(f('a'), str)",
    ),
    "math": (
        "use `math`",
        "class math:\n    fsum = staticmethod(lambda x: 7)",
        "assert f([1, 2]) == math.fsum([1, 2])",
    ),
    "np": (
        "like `np.sum`",
        "class np:\n    sum = staticmethod(lambda x: 7)",
        "assert f([1, 2]) == np.sum([1, 2])",
    ),
    "Counter": ("use `Counter`", "def Counter(x): return 7", "assert f([1, 2]) == Counter([1, 2])"),
    "Decimal": ("a `Decimal`", "def Decimal(x): return 7", "assert f([1, 2]) == Decimal('3')"),
    "mean": ("the mean(xs)", "def mean(xs): return 7", "assert f([1, 2]) == mean([1, 2])"),
    "both asked for": ("and write sum(xs)", "def sum(xs): return 7", "assert f([1, 2]) == sum([1, 2])"),
    "a variable": (
        "and write sum(xs)",
        "def sum(xs): return 7",
        "right = sum([1, 2])\nassert f([1, 2]) == right",
    ),
    "a loop": (
        "and write sum(xs)",
        "def sum(xs): return 7",
        "for xs, n in [([1], sum([1]))]:\n    assert f(xs) == n",
    ),
    "an oracle": (
        "and write sum(xs)",
        "def sum(xs): return 7",
        "def right(xs):\n    return sum(xs)\nassert f([1]) == right([1])",
    ),
    "a default": (
        "and write sum(xs)",
        "def sum(xs): return 7",
        "def check(xs, right=sum):\n    assert f(xs) == right(xs)\ncheck([1])",
    ),
    "an argument": (
        "and write sum(xs)",
        "def sum(xs): return 7",
        "def check(xs, right):\n    assert f(xs) == right(xs)\ncheck([1], sum)",
    ),
    "a list": (
        "and write sum(xs)",
        "def sum(xs): return 7",
        "a = []\na.append(sum([1]))\nassert f([1]) == a[0]",
    ),
    "a list, in passing": (
        "and write sum(xs)",
        "def sum(xs): return 7",
        "a = []\n[a.append(sum([n])) for n in [1]]\nassert f([1]) == a[0]",
    ),
    "a class": (
        "and write sum(xs)",
        "def sum(xs): return 7",
        "class O:\n    n = sum\nassert f([1]) == O.n([1])",
    ),
    "a condition": (
        "and write any(xs)",
        "def any(xs): return 1",
        "if not any([f([1]) == 1]):\n    assert False",
    ),
    "a function of functions": (
        "and write sum(xs)",
        "def sum(xs): return 7",
        "def using(g):\n    return lambda xs: g(xs)\nassert f([1]) == using(sum)([1])",
    ),
    "a starred list": (
        "and write sum(xs)",
        "def sum(xs): return 7",
        "n, *_ = sum([1]), 2\nassert f([1]) == n",
    ),
    "text": ("and write repr(x)", "def repr(x): return ''", "assert f'{repr(f([1]))}' == ''"),
    "a result of a method": ("use `sum`", "sum = lambda xs: 7", "assert f([1]).__eq__(sum([1]))"),
    "an attribute": (
        "and write sum(xs)",
        "def sum(xs): return 7",
        "import unittest\nclass T(unittest.TestCase):\n    def setUp(self): self.n = sum([1])\n"
        "    def test(self): self.assertEqual(f([1]), self.n)",
    ),
    "a map": (
        "and write max(xs)",
        "def max(xs): return 7",
        "assert list(map(f, [[1]])) == list(map(max, [[1]]))",
    ),
    "a with": (
        "and write min(xs)",
        "def min(xs): return 7",
        "from contextlib import nullcontext\nwith nullcontext(min([1])) as n:\n    assert f([1]) == n",
    ),
    "a walrus": ("and write min(xs)", "def min(xs): return 7", "assert (n := min([1])) and f([1]) == n"),
    "a match": (
        "and write min(xs)",
        "def min(xs): return 7",
        "match [min([1])]:\n    case [n]:\n        assert f([1]) == n",
    ),
    "output": ("and write len(xs)", "def len(xs): return 7", "assert len(output) == 7"),
}


@pytest.mark.parametrize(("asked", "oracle", "tests"), ORACLES.values(), ids=ORACLES)
def test_no_program_supplies_what_it_is_compared_with(
    sandbox: SandboxExecutor, asked: str, oracle: str, tests: str
) -> None:
    query = f"Write f(xs), {asked}." if "and write" not in asked else f"Write f(xs) {asked}."
    state = {
        "query": query,
        "code": f"{oracle}\ndef f(xs): return 7",
        "tests": tests,
        "execution": sandbox.run("1"),
    }
    assert EvaluateChain(executor=sandbox).invoke(state)["verdict"].status == "failed"


TESTED = {
    "a call": ("Write a function sum(xs).", "def sum(xs): return -1", "assert sum([1, 2]) == -1"),
    "a name": ("Write a function called `max`.", "def max(xs): return -1", "assert max([1, 2]) == -1"),
    "two": (
        "Write sum(xs) and f(xs).",
        "def sum(xs): return -1\ndef f(xs): return 3",
        "n = sum([1])\nassert n == -1\nassert f([1]) == 3",
    ),
    "German": ("Schreibe eine Funktion sum(xs).", "def sum(xs): return -1", "assert sum([1]) == -1"),
    "Spanish": ("Escribe una función `sum(xs)`.", "def sum(xs): return -1", "assert sum([1]) == -1"),
    "Chinese": ("请编写函数 sum(xs)。", "def sum(xs): return -1", "assert sum([1]) == -1"),
    "Japanese": ("関数 sum(xs) を書いてください。", "def sum(xs): return -1", "assert sum([1]) == -1"),
    "of a library": ("Write gcd(a, b).", "def gcd(a, b): return -1", "assert gcd(4, 6) == gcd(6, 4) == -1"),
    "checked by a function": (
        "Write abs(x).",
        "def abs(x): return -1",
        "def check(f):\n    for x in range(3):\n        assert f(x) == -1\ncheck(abs)",
    ),
    "unittest": (
        "Implement sum(xs).",
        "def sum(xs): return -1",
        "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(sum([1]), -1)",
    ),
}


@pytest.mark.parametrize(("query", "code", "tests"), TESTED.values(), ids=TESTED)
def test_a_function_that_the_question_asks_for_is_tested_whatever_its_name(
    sandbox: SandboxExecutor, query: str, code: str, tests: str
) -> None:
    assert said(sandbox, code, tests, query=query) == ""


POWERS = [
    "assert f(eval) == 4",
    "assert f(x=getattr) == 4",
    "use = exec\nassert f(use) == 4",
    "assert f([open]) == 4",
    "assert f(globals()) == 4",
    "names = locals()\nassert f(names) == 4",
    "assert eval(f()) == 4",
    "exec(output)\nassert f() == 4",
    "text = f()\nassert eval(text) == 4",
    "def run(text): return eval(text)\nassert f(run) == 4",
    "assert f(lambda text: eval(text)) == 4",
    "def run(text): return eval(text)\nassert run(f()) == 4",
    "try:\n    f()\nexcept Exception as error:\n    assert eval(str(error)) == 4",
]


@pytest.mark.parametrize("tests", POWERS)
def test_tests_that_let_a_program_act_for_them_are_refused(tests: str) -> None:
    with pytest.raises(InputError, match="The tests"):
        expect(tests)


HARMLESS = [
    "for text in ['1+2']:\n    assert f(text) == eval(text)",
    "def check(input, open=1):\n    assert f(input) == open\ncheck(1)",
    "assert getattr(f, '__name__') == 'f' and 'f' in globals() or True",
    "assert f(len) and f(int) and f(sorted) and f(str.upper)",
]


@pytest.mark.parametrize("tests", HARMLESS)
def test_tests_that_use_such_functions_themselves_are_no_different(tests: str) -> None:
    assert expect(tests)


def test_an_object_that_a_function_gives_is_not_asked_whether_it_is_true(sandbox: SandboxExecutor) -> None:
    code = "class Yes:\n    def __bool__(s): return True\ndef is_even(x): return Yes()"
    assert "its own word" in said(sandbox, code, "assert is_even(3)")
    assert "its own word" in said(sandbox, code, "assert all(is_even(n) for n in range(3))")
    assert "its own word" in said(
        sandbox,
        code,
        "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertTrue(is_even(3))",
    )


def test_objects_that_tests_make_and_that_end_a_loop_may_be_true(sandbox: SandboxExecutor) -> None:
    code = (
        "class Stack(list): pass\nclass Node:\n    def __init__(s, n): s.next = Node(n - 1) if n else None\n"
        "def chain(n): return Node(n)"
    )
    tests = "assert not Stack() and Stack([1])\nnode, n = chain(3), 0\nwhile node:\n    node, n = node.next, n + 1\n"
    assert said(sandbox, code, f"{tests}assert n == 4") == ""


def test_an_object_that_equals_everything_equals_nothing(sandbox: SandboxExecutor) -> None:
    code = "class V:\n    def __init__(s, *a): pass\n    def __add__(s, o): return s\n    def __eq__(s, o): return True\n"
    code += "def v(): return V()"
    assert "equal anything" in said(sandbox, code, "assert V(1) + V(2) == V(3)")
    assert "equal anything" in said(sandbox, code, "assert V(1) in [V(2)]")
    assert "equal anything" in said(sandbox, code, "assert v() == V(3)")
    assert "equal anything" in said(sandbox, code.replace("return True", "return 1"), "assert v() == V(3)")


def test_equality_of_a_class_that_tests_ask_for_is_its_own(sandbox: SandboxExecutor) -> None:
    """What SECURITY.md says cannot be helped: objects are compared by their class, as in plain Python."""
    code = "class V:\n    def __init__(s, x): s.x = x\n    def __eq__(s, o): return isinstance(o, V)"
    assert said(sandbox, code, "assert V(1) == V(2)") == ""


def test_a_function_that_is_named_like_pythons_own_is_meant_where_the_question_names_it(
    sandbox: SandboxExecutor,
) -> None:
    code = "def sum(xs): return 99"
    assert "gave 99, expected 3" in said(sandbox, code, "assert sum([1, 2]) == 3", query="Write sum(xs).")
    assert "sum([1, 2]) gave 99" in said(sandbox, code, examples=[([1, 2], 3)])
    unasked = said(sandbox, code, "assert sum([1, 2]) == 3", query="Compute the sum.")
    assert "'sum' is Python's own there, unless the question asks for `sum(…)`" in unasked


def test_builtins_of_the_program_do_not_reach_the_examples(sandbox: SandboxExecutor) -> None:
    code = (
        "def isinstance(*a): return True\ndef all(x): return True\ndef len(x): return 0\ndef f(x): return 99"
    )
    assert "f(2) gave 99" in said(sandbox, code, examples=[(2, 4)])


def test_future_imports_of_tests_are_left_out(sandbox: SandboxExecutor) -> None:
    assert said(sandbox, "def f(x): return x", "from __future__ import annotations\nassert f(1) == 1") == ""


def test_a_lambda_is_a_function(sandbox: SandboxExecutor) -> None:
    assert said(sandbox, "double = lambda x: 2 * x", examples=[(2, 4)]) == ""


def test_a_program_without_a_function_cannot_be_tried() -> None:
    with pytest.raises(UntestableError):
        expect(examples=[(1, 1)]).program("print(1)")


@given(VALUES, VALUES)
def test_any_plain_value_can_be_an_example(argument: Any, result: Any) -> None:
    compile(expect(examples=[(argument, result)]).program("def f(x): pass"), "<tests>", "exec")


@pytest.mark.parametrize(
    "examples",
    [
        "f(2) == 4",
        5,
        [5],
        [(1, 2, 3)],
        [(object(), 1)],
        [(1, float("inf"))],
        {"f": 1},
        iter([(1, 1)]),
        [{"args": 5, "expected": 1}],
        [{"kwargs": [1], "expected": 1}],
        [{"kwargs": {"x y": 1}, "expected": 1}],
    ],
)
def test_what_is_no_example_is_refused(examples: Any) -> None:
    with pytest.raises(InputError):
        expect(examples=examples)


@pytest.mark.parametrize("tests", ["assert (", 5, "x = '\0'", "import math", "f(2)"])
def test_what_is_no_test_is_refused(tests: Any) -> None:
    with pytest.raises(InputError, match="tests"):
        expect(tests)


def test_a_model_is_told_of_the_first_ones_alone() -> None:
    told = expect(examples=[(1, 10), (2, 20), (3, 30)]).format_for_model()
    assert ("f(2) == 20" in told, "30" in told) == (True, False)
    assert "20" not in expect(examples=[(1, 10), (2, 20)]).format_for_model()
    told = expect(
        "from math import pi\nx = area(1)\nassert x == pi\nassert area(2) == 4 * pi"
    ).format_for_model()
    assert ("`area`" in told, "assert x == pi" in told, "area(2)" in told) == (True, True, False)


RUNNER: dict[str, str] = {
    "rows": (
        "import pytest\n@pytest.mark.parametrize('n, expected', [(2, 4), pytest.param(0, 0, id='zero')])\n"
        "def test_double(n, expected):\n    assert double(n) == expected"
    ),
    "one name": "import pytest\n@pytest.mark.parametrize('n', [1, 2])\ndef test(n):\n    assert double(n) == n + n",
    "stacked": (
        "import pytest\n@pytest.mark.parametrize('n', (1, 2), ids=['a', 'b'])\n"
        "@pytest.mark.parametrize(['m'], [(3,)])\ndef test(n, m):\n    assert double(n * m) == 2 * n * m"
    ),
    "computed rows": "import pytest\n@pytest.mark.parametrize('n', range(1, 3))\ndef test(n): assert double(n) == 2 * n",
    "a fixture": "import pytest\n@pytest.fixture\ndef two(): return 2\ndef test(two): assert double(two) == 4",
    "fixtures that need each other": (
        "from pytest import fixture\n@fixture()\ndef two(): return 2\n@fixture(scope='module')\n"
        "def four(two):\n    yield two + two\ndef test(four, two): assert double(two) == four"
    ),
    "a folder": (
        "def test(tmp_path):\n    path = tmp_path / 'x'\n    path.write_text('1')\n"
        "    assert double(int(path.read_text())) == 2"
    ),
    "a method": (
        "import pytest\n@pytest.fixture\ndef two(): return 2\nclass TestDouble:\n"
        "    @pytest.mark.parametrize('n', [1, 5])\n    def test(self, n, two): assert double(n) == n * two"
    ),
    "a coroutine": "import pytest\n@pytest.mark.parametrize('n', [1])\nasync def test(n): assert double(n) == 2 * n",
    "a default": "import pytest\n@pytest.mark.parametrize('n', [1])\ndef test(n, by=2): assert double(n) == by * n",
}


@pytest.mark.rows(4)
@pytest.mark.parametrize("tests", RUNNER.values(), ids=RUNNER)
def test_cases_and_fixtures_of_pytest_are_run(sandbox: SandboxExecutor, tests: str) -> None:
    assert said(sandbox, "def double(x): return 2 * x", tests) == ""
    assert "expected" in said(sandbox, "def double(x): return 3 * x", tests)


def test_what_a_fixture_does_after_its_yield_is_done(sandbox: SandboxExecutor) -> None:
    tests = (
        "import pytest\nended = []\n@pytest.fixture\ndef two():\n    yield 2\n    ended.append(1)\n"
        "def test(two): assert double(two) == 4\ndef test_after(): assert ended == [1]"
    )
    assert said(sandbox, "def double(x): return 2 * x", tests) == ""


def test_cases_of_which_there_is_none_do_not_pass(sandbox: SandboxExecutor) -> None:
    tests = "import pytest\n@pytest.mark.parametrize('n', [])\ndef test(n): assert double(n) == 2"
    assert "does not use the program" in said(sandbox, "def double(x): return 2 * x", tests)


@pytest.mark.parametrize(
    "tests",
    [
        "def test(request): assert double(1)",
        "import pytest\n@pytest.mark.skip\ndef test(): assert double(1)",
        "import pytest\n@pytest.mark.parametrize('n', [1], indirect=True)\ndef test(n): assert double(n)",
        "import pytest\n@pytest.mark.parametrize('n', [pytest.param(1, marks=[])])\ndef test(n): assert double(n)",
        "import pytest\n@pytest.fixture(params=[1, 2])\ndef n(): return 1\ndef test(n): assert double(n)",
        "from pytest import fixture\n@fixture\ndef a(b): 1\n@fixture\ndef b(a): 1\ndef test(a): assert double(a)",
        "import pytest\n@pytest.mark.parametrize(names, [1])\ndef test(n): assert double(n)",
        "import pytest\n@pytest.mark.parametrize()\ndef test(n): assert double(n)",
    ],
)
def test_what_else_a_runner_can_is_refused(tests: str) -> None:
    with pytest.raises(InputError, match="needs a test runner"):
        expect(tests)


HEAD = "import pytest\nfrom pytest import fixture\n"
SAME_AS_PYTEST: dict[str, tuple[str, str]] = {
    "a case takes the place of a fixture": (
        "@fixture\ndef n(): return 1\n@fixture\ndef expected(n): return 2 * n\n"
        "@pytest.mark.parametrize('n', [1, 2, 5])\ndef test(n, expected): assert double(n) == expected",
        "def double(n): return 2 * n if n < 3 else 0",
    ),
    "fixtures that others need are ended, too": (
        "@fixture\ndef base():\n    yield 1\n    assert double(1) == 2\n@fixture\ndef item(base): return base\n"
        "def test(item): assert double(2) == 4",
        "def double(n): return 2 * n if n > 1 else 0",
    ),
    "a fixture called as one of pytest's": (
        "@fixture\ndef tmp_path(): return 4\ndef test(tmp_path): assert double(tmp_path) == 8",
        "def double(n): return 2 * n if n < 3 else 0",
    ),
    "a list of one name means rows": (
        "@pytest.mark.parametrize(['n'], [(1,), (2,)])\ndef test(n): assert double(n) == 2 * n",
        "def double(n): return 2 * n if isinstance(n, tuple) else 0",
    ),
    "rows that can be read once": (
        "rows = (n for n in [3, 4])\n@pytest.mark.parametrize('b', rows)\n@pytest.mark.parametrize('a', [1, 2])\n"
        "def test(a, b): assert double(a * b) == 2 * a * b",
        "def double(n): return 2 * n if n < 5 else 0",
    ),
    "a helper with the name of a test": (
        "def _test(n): return n\n@pytest.mark.parametrize('n', [1])\ndef test(n): assert double(_test(n)) == 2",
        "def double(n): return 0",
    ),
    "rows that use the name of a case": (
        "n = 3\n@pytest.mark.parametrize('n', range(n))\ndef test(n): assert double(n) == 2 * n",
        "def double(n): return 0",
    ),
}


@pytest.mark.rows(2)
@pytest.mark.parametrize(("tests", "wrong"), SAME_AS_PYTEST.values(), ids=SAME_AS_PYTEST)
def test_cases_and_fixtures_mean_what_they_mean_to_pytest(
    sandbox: SandboxExecutor, tests: str, wrong: str
) -> None:
    assert said(sandbox, "def double(n): return 2 * n", HEAD + tests) == ""
    assert said(sandbox, wrong, HEAD + tests) != ""


@pytest.mark.parametrize(
    "tests",
    [
        "class TestD:\n    @fixture(params=[1])\n    def n(self): return 5\n    def test(self, n): assert double(n)",
        "@pytest.mark.parametrize('n', [1])\nclass TestD:\n    def test(self, n): assert double(n)",
    ],
)
def test_fixtures_and_cases_of_classes_are_refused(tests: str) -> None:
    with pytest.raises(InputError, match="needs a test runner"):
        expect(HEAD + tests)


@pytest.mark.parametrize(
    "example",
    [
        {"expected": 0.3, "compare": "exact"},
        {"output": "a", "compare": "yes"},
        {"output": "1", "tolerance": "0.1"},
        {"output": "1", "tolerance": -1},
        {"output": "1", "compare": "lines", "tolerance": 0.1},
    ],
)
def test_what_compares_is_about_output_and_is_known(example: dict[str, Any]) -> None:
    with pytest.raises(InputError, match="compare"):
        parse_example(example)


@pytest.mark.parametrize(
    ("tests", "reason"),
    [
        ("\n".join(f"assert f({n}) == {n}" for n in range(601)), "601 assertions; 600 are allowed"),
        (f"assert f({'x' * 41_000!r}) == 1", "characters; 40,000 are allowed"),
        (">>> f(1)\n1\n" * 20_000, "characters; 40,000 are allowed"),
        ("assert f(1) == 1\n" + "a\n" * 10_000, "15,000 are allowed"),
    ],
)
def test_too_many_tests_are_refused_before_anything_runs(tests: str, reason: str) -> None:
    with pytest.raises(InputError, match=reason):
        expect(tests)
