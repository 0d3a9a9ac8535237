from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from code_chains.chains import EvaluateChain
from code_chains.errors import InputError
from code_chains.executors import Limits, SandboxExecutor
from code_chains.expectations import UntestableError, expect

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.tuples(inner, inner) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
    ),
    max_leaves=5,
)


@pytest.fixture(scope="module")
def box() -> Iterator[SandboxExecutor]:
    with SandboxExecutor(limits=Limits(seconds=5), preload=("numpy",), standbys=2) as box:
        yield box


def said(box: SandboxExecutor, code: str, tests: str | None = None, examples: Any = None, **given: str) -> str:
    """What tests and examples say about a program; nothing if it holds."""
    error = box.examine(code, expect(tests, examples).program(code, **given))[1].error
    return error.message if error else ""


def test_a_failed_assertion_says_what_it_got(box: SandboxExecutor) -> None:
    assert said(box, "def f(x): return x + 3", "assert f(2) == 4") == "f(2) gave 5, expected 4"


def test_a_comparison_says_what_it_found(box: SandboxExecutor) -> None:
    assert said(box, "def f(x): return x", "assert f(2) > 4") == "f(2) > 4 does not hold: it is 2"


def test_a_message_of_its_own_stays(box: SandboxExecutor) -> None:
    assert said(box, "def f(x): return x", "assert f(2) == 4, 'not doubled'") == "not doubled"


def test_tests_see_what_was_printed(box: SandboxExecutor) -> None:
    assert said(box, "print(15)", "assert '15' in output", output="15") == ""


def test_examples_are_tried_on_the_function_that_the_question_names(box: SandboxExecutor) -> None:
    code = "def double(x): return 2 * x\ndef helper(x): return x"
    assert said(box, code, examples=[(2, 4)], query="Write double(x).") == ""
    assert "helper(2) gave 2, expected 4" in said(box, code, examples=[(2, 4)])


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
def test_examples_come_in_many_forms(box: SandboxExecutor, examples: Any, code: str) -> None:
    assert said(box, code, examples=examples) == ""


def test_an_error_in_the_program_says_where(box: SandboxExecutor) -> None:
    assert "in line 2 of the program, with n = 0" in said(box, "def f(n):\n    return 1 / n", examples=[(0, 1)])


def test_text_is_no_number(box: SandboxExecutor) -> None:
    assert "gave '4', expected 4" in said(box, "def f(x): return str(2 * x)", examples=[(2, 4)])


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
    "a context manager": "import numpy\ndef test():\n    numpy.testing.assert_allclose([double(2)], [4])",
}


@pytest.mark.parametrize("tests", CALLED.values(), ids=CALLED)
def test_what_others_would_call_is_called(box: SandboxExecutor, tests: str) -> None:
    assert said(box, "def double(x): return 2 * x", tests) == ""
    assert said(box, "def double(x): return 3 * x", tests) != ""


UNCALLED = {
    "a check that nobody calls": "def check(candidate):\n    assert candidate(2) == 4\nassert double(0) == 0",
    "an exit": "def test_double():\n    assert double(2) == 4\nimport sys\nsys.exit()",
    "a test that is skipped": (
        "import unittest\nclass T(unittest.TestCase):\n    def test(self): self.assertEqual(double(9), 18)\n"
        "    @unittest.skip('x')\n    def test_other(self): pass"
    ),
}


@pytest.mark.parametrize("tests", UNCALLED.values(), ids=UNCALLED)
def test_tests_that_were_not_all_run_do_not_pass(box: SandboxExecutor, tests: str) -> None:
    code = "def double(x): return 2 * x"
    assert box.examine(code, expect(tests).program(code))[1].status == "error"


@pytest.mark.parametrize(
    "tests", ["def test(n):\n    assert n", "import pytest\n@pytest.mark.x\ndef test():\n    assert 1"]
)
def test_tests_that_need_a_runner_are_refused(tests: str) -> None:
    with pytest.raises(InputError, match="Use a loop"):
        expect(tests)


LIBRARIES = {
    "a module": ("class math:\n    isclose = staticmethod(lambda *a: True)", "assert math.isclose(area(1), 3.14)"),
    "a class": (
        "class Counter:\n    def __init__(s, x): pass\n    def __eq__(s, o): return True",
        "assert Counter('a') == Counter('b')",
    ),
    "a builtin": ("def sum(x): return 0", "assert area(1) == sum([1, 2])"),
}


@pytest.mark.parametrize(("code", "tests"), LIBRARIES.values(), ids=LIBRARIES)
def test_a_program_does_not_stand_in_for_a_library(box: SandboxExecutor, code: str, tests: str) -> None:
    program = f"{code}\ndef area(x): return 0"
    state = {"query": "Write area(x), the sum of all.", "code": program, "tests": tests, "execution": box.run("1")}
    assert EvaluateChain(executor=box).invoke(state)["verdict"].status == "failed"


def test_an_import_that_the_tests_forgot_is_theirs(box: SandboxExecutor) -> None:
    assert (
        said(box, "def area(r): return 3.14159265 * r * r", "assert math.isclose(area(1), math.pi, rel_tol=1e-6)") == ""
    )


def test_tiny_numbers_are_compared(box: SandboxExecutor) -> None:
    assert "gave 0.0" in said(box, "def f(x): return 0.0", examples=[(1, 1.602e-19)])
    assert "gave" in said(box, "def f(x): return 10 ** 400", examples=[(1, 1e300)])


def test_examples_are_not_about_a_helper(box: SandboxExecutor) -> None:
    assert said(box, "def area(x): return helper(x)\ndef helper(x): return 3 * x", examples=[(2, 6)]) == ""
    assert said(box, "def double(x): return add(x, x)\ndef add(a, b): return a + b", examples=[(2, 4)]) == ""


def test_tests_that_never_assert_anything_fail(box: SandboxExecutor) -> None:
    assert "without asserting anything" in said(box, "x = 1", "if False:\n    assert x == 2")


def test_a_function_that_is_named_like_pythons_own_is_meant_where_the_question_names_it(box: SandboxExecutor) -> None:
    code = "def sum(xs): return 99"
    assert "gave 99, expected 3" in said(box, code, "assert sum([1, 2]) == 3", query="Write sum(xs).")
    assert "sum([1, 2]) gave 99" in said(box, code, examples=[([1, 2], 3)])
    with pytest.raises(UntestableError, match="Rename it"):
        expect("assert sum([1, 2]) == 3").program(code, query="Add the numbers.")


def test_builtins_of_the_program_do_not_reach_the_examples(box: SandboxExecutor) -> None:
    code = "def isinstance(*a): return True\ndef all(x): return True\ndef len(x): return 0\ndef f(x): return 99"
    assert "f(2) gave 99" in said(box, code, examples=[(2, 4)])


def test_future_imports_of_tests_are_left_out(box: SandboxExecutor) -> None:
    assert said(box, "def f(x): return x", "from __future__ import annotations\nassert f(1) == 1") == ""


def test_a_lambda_is_a_function(box: SandboxExecutor) -> None:
    assert said(box, "double = lambda x: 2 * x", examples=[(2, 4)]) == ""


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
    told = expect(examples=[(1, 10), (2, 20), (3, 30)]).told()
    assert ("f(2) == 20" in told, "30" in told) == (True, False)
    assert "20" not in expect(examples=[(1, 10), (2, 20)]).told()
    told = expect("from math import pi\nx = area(1)\nassert x == pi\nassert area(2) == 4 * pi").told()
    assert ("`area`" in told, "assert x == pi" in told, "area(2)" in told) == (True, True, False)
