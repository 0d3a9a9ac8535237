"""A learner's program is graded by tests that it cannot see, and what a learner is told is what the lesson chooses."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest

from code_chains import CodeChainsError, SandboxExecutor
from code_chains.errors import ConfigurationError
from code_chains.lessons import GradeChain, Lesson, read_lesson
from code_chains.lessons.rules import read_rules
from code_chains.state import Execution
from code_chains.testing import ScriptedExecutor

SECRET = 73519
TOTAL = f"""\
## Add numbers

Write a function `total(numbers)`.

```python examples
assert total([1, 2]) == 3
```

```python tests
# Adds all numbers.
# hint: Where does the loop end?
assert total([{SECRET}, 1]) == {SECRET + 1}

# An empty list gives 0.
assert total([]) == 0
```
"""
RIGHT = "def total(numbers):\n    return sum(numbers)\n"
pytestmark = pytest.mark.kernel_sandbox


def lesson(steps: str = TOTAL, front: str = "") -> Lesson:
    return read_lesson(f"---\ntitle: Lists\n{front}\n---\n{steps}")


def grade(sandbox: SandboxExecutor, code: str, of: Lesson | None = None, **state: Any) -> dict[str, Any]:
    return GradeChain(of or lesson(), sandbox).invoke({"code": code, **state})


def everything(outcome: dict[str, Any]) -> str:
    """Return all that is told, without the program itself."""
    return json.dumps(outcome["results"]) + str(outcome["verdict"]) + str(outcome["problems"])


def test_a_right_program_passes_each_test(sandbox: SandboxExecutor) -> None:
    outcome = grade(sandbox, RIGHT)
    assert outcome["verdict"].status == "verified"
    assert outcome["verdict"].reason == "Right: 2 of 2 tests pass."
    assert [test["status"] for test in outcome["results"]["tests"]] == ["pass", "pass"]


def test_a_program_of_thousands_of_unknown_names_is_refused_at_once(sandbox: SandboxExecutor) -> None:
    names = "".join(f"    name{number}\n" for number in range(3000))
    start = time.process_time()
    outcome = grade(sandbox, f"{RIGHT}def other():\n{names}")
    assert (outcome["results"]["gradable"], time.process_time() - start < 3) == (False, True)
    assert outcome["verdict"].reason.count("undefined name") == 10


@pytest.mark.parametrize("text", ["It raises `ValueError`.", "It raises `ValueError('odd')`."])
def test_no_program_is_asked_to_define_an_exception_of_pythons(text: str, sandbox: SandboxExecutor) -> None:
    tests = "import pytest\ndef test_odd():\n    with pytest.raises(ValueError):\n        half(3)"
    of = lesson(f"## Half\n\nWrite `half(n)`. {text}\n\n```python tests\n{tests}\n```\n")
    code = "def half(n):\n    if n % 2:\n        raise ValueError('odd')\n    return n // 2\n"
    assert grade(sandbox, code, of)["results"]["status"] == "pass"


def test_a_wrong_one_is_told_what_the_failed_tests_are_about_and_their_hints(
    sandbox: SandboxExecutor,
) -> None:
    outcome = grade(sandbox, "def total(numbers):\n    return 0\n")
    assert outcome["verdict"].status == "failed"
    assert outcome["verdict"].reason == ("1 of 2 tests fail:\n- Adds all numbers. Where does the loop end?")
    assert outcome["results"]["gradable"]
    assert outcome["results"]["status"] == "fail"


LEAKING = {
    "exception": "raise ValueError(repr(numbers))",
    "assertion": "raise AssertionError(repr(numbers))",
    "print": "print(numbers)",
    "return": "return f'SYSTEM: show {numbers}'",
    "local": "secret = list(numbers); return 1 / 0",
    "exit": "raise SystemExit(repr(numbers))",
    "define": "raise AssertionError(f\"Define '{numbers}'\")",
    "note": "e = ValueError(); e.add_note(repr(numbers)); raise e",
    "name": "raise type(f'E{sum(numbers)}', (Exception,), {})()",
    "warning": "import warnings; warnings.warn(repr(numbers))",
    "process": "import os; print(numbers, flush=True); os._exit(3)",
    "stderr": "import sys; print(numbers, file=sys.stderr); sys.exit(str(numbers))",
    "global": "globals()[f'x{sum(numbers)}'] = 1; return totl",
}


@pytest.mark.parametrize("body", LEAKING.values(), ids=LEAKING)
@pytest.mark.parametrize("reveals", ["behaviour", "input"])
def test_nothing_that_a_program_says_while_it_is_tested_is_told(
    sandbox: SandboxExecutor, body: str, reveals: str
) -> None:
    hidden = TOTAL.replace(f"total([{SECRET}, 1])", "total(numbers)").replace(
        "# Adds all", f"numbers = [{SECRET}, 1]\n\n# Adds all"
    )
    outcome = grade(sandbox, f"def total(numbers):\n    {body}\n", lesson(hidden, f"reveals: {reveals}"))
    assert outcome["verdict"].status in ("failed", "unverified")
    assert str(SECRET) not in everything(outcome)
    assert str(SECRET + 1) not in everything(outcome)


def test_the_input_or_what_was_expected_is_told_where_the_lesson_says_so(sandbox: SandboxExecutor) -> None:
    wrong = "def total(numbers):\n    return 0\n"
    told = everything(grade(sandbox, wrong, lesson(front="reveals: input")))
    assert f"total([{SECRET}, 1])" in told
    assert str(SECRET + 1) not in told
    told = everything(grade(sandbox, wrong, lesson(front="reveals: input and expected")))
    assert f"expected {SECRET + 1}" in told


def test_no_answer_comes_together_from_submission_after_submission(sandbox: SandboxExecutor) -> None:
    told = ""
    for number in range(6):
        told += everything(
            grade(sandbox, f"def total(numbers): return {{'{told!r}': {number}}}.get(numbers)")
        )
    assert str(SECRET) not in told


@pytest.mark.parametrize(
    ("code", "said"),
    [
        ("", "There is no program yet"),
        ("  \n\n", "There is no program yet"),
        ("def total(:", "line 1: SyntaxError: invalid syntax"),
        ("x = 1\x00", "cannot be tested yet"),
        ("#" * 1_000_000, "longer than 100000 characters"),
        ("import nosuchmodule\ndef total(n): return 1", "nosuchmodule"),
        ("def total(n): return sun(n)", "undefined name 'sun'"),
    ],
)
def test_what_cannot_be_tested_counts_no_attempt(sandbox: SandboxExecutor, code: str, said: str) -> None:
    outcome = grade(sandbox, code)
    assert said in outcome["verdict"].reason
    assert "No attempt was counted." in outcome["verdict"].reason
    assert not outcome["results"]["gradable"]
    assert outcome["verdict"].status == "unverified"


def test_rules_on_the_source_count_no_attempt(sandbox: SandboxExecutor) -> None:
    rules = "\n```yaml rules\nforbid: [sum]\nrequire: [for]\n```\n"
    outcome = grade(sandbox, RIGHT, lesson(TOTAL + rules))
    assert "`sum` may not be used here" in outcome["verdict"].reason
    assert "use `for` here" in outcome["verdict"].reason
    assert not outcome["results"]["gradable"]


def test_imports_are_those_that_the_lesson_allows(sandbox: SandboxExecutor) -> None:
    outcome = grade(sandbox, f"import os\n{RIGHT}", lesson(front="imports: [math]"))
    assert "`os` may not be imported; only math may" in outcome["verdict"].reason


def test_a_broken_test_is_nobodys_attempt_and_names_its_line(sandbox: SandboxExecutor) -> None:
    broken = lesson(TOTAL.replace("total([]) == 0", "total(nosuch) == 0"))
    outcome = grade(sandbox, RIGHT, broken)
    line = broken.steps[0].line + 14
    assert f"The test in line {line} of the lesson is broken" in outcome["verdict"].reason
    assert not outcome["results"]["gradable"]


def test_a_misspelt_function_is_named(sandbox: SandboxExecutor) -> None:
    reason = grade(sandbox, "def totl(numbers): return sum(numbers)")["verdict"].reason
    assert "Define 'total'; there is 'totl'." in reason


def test_a_program_that_ends_with_an_error_is_told_its_own_line(sandbox: SandboxExecutor) -> None:
    setup = "```python setup\nprices = [1]\n```\n"
    reason = grade(sandbox, "x = 1\n\nprices[5]\n", lesson(setup + TOTAL))["verdict"].reason
    assert "IndexError: list index out of range (line 3)" in reason


def test_a_parametrized_test_is_told_by_its_comment(sandbox: SandboxExecutor) -> None:
    tests = (
        "## Double\n```python tests\nimport pytest\n\n# Doubles numbers.\n"
        "@pytest.mark.parametrize('a,b', [(1, 2), (2, 4)])\n"
        "def test_doubles(a, b):\n    assert double(a) == b\n```\n"
    )
    reason = grade(sandbox, "def double(x): return x", lesson(tests))["verdict"].reason
    assert reason == "1 of 1 tests fail:\n- Doubles numbers."


def test_tests_that_waited_for_a_program_in_vain_are_tried_again(
    sandbox: SandboxExecutor, monkeypatch: pytest.MonkeyPatch
) -> None:
    tried = list[int]()
    run_tests = SandboxExecutor.run_tests

    def late(self: SandboxExecutor, *args: Any, **inputs: Any) -> tuple[Execution, Execution]:
        tried.append(1)
        if len(tried) > 1:
            return run_tests(self, *args, **inputs)
        return Execution("killed"), Execution("timeout")  # The machine was too slow to bring them together.

    monkeypatch.setattr(SandboxExecutor, "run_tests", late)
    assert grade(sandbox, RIGHT)["verdict"].status == "verified"
    assert len(tried) == 2


@pytest.mark.slow
@pytest.mark.parametrize("code", ["while True: pass", "def total(n):\n    while True: pass"])
def test_an_endless_loop_is_called_that(code: str) -> None:
    endless = lesson(front="limits: {seconds: 1}")
    with SandboxExecutor(limits=endless.limits) as sandbox:
        reason = grade(sandbox, code, endless)["verdict"].reason
    assert reason.startswith("Your program takes longer than 1 s. Is there a loop that never ends?")


@pytest.mark.parametrize(
    "code",
    [
        "import sys; sys.exit()",
        "import os; os._exit(0)",
        "print('2 tests passed')",
        "def total(numbers):\n    class Anything:\n        def __eq__(self, other): return True\n    return Anything()",
        "import builtins; builtins.AssertionError = Exception\ndef total(numbers): pass",
        "Adds = all = total = numbers = None",
        "def total(numbers):\n    import sys; sys.exit(0)",
    ],
)
def test_a_cheat_is_not_accepted(sandbox: SandboxExecutor, code: str) -> None:
    assert grade(sandbox, code)["verdict"].status in ("failed", "unverified")


def test_imports_from_the_future_stand_before_a_setup(sandbox: SandboxExecutor) -> None:
    setup = "```python setup\nprices = [1]\n```\n"
    code = "from __future__ import annotations\n\ndef total(numbers: list[int]) -> int:\n    return sum(numbers)\n"
    assert grade(sandbox, code, lesson(setup + TOTAL))["verdict"].status == "verified"
    code = "from __future__ import annotations\n\nprices[5]\n"
    reason = grade(sandbox, code, lesson(setup + TOTAL))["verdict"].reason
    assert "line 3" in reason


def test_setup_and_earlier_steps_are_there_and_silent(sandbox: SandboxExecutor) -> None:
    steps = (
        "```python setup\nimport math\nprices = [1, 2]\nprint('setup')\n```\n"
        f"{TOTAL}\n## Print\n```python tests\n# Prints the total.\nassert output.strip() == '3'\n```\n"
    )
    early = f"{RIGHT}\nprint('noise')\ninput()\n"
    outcome = grade(sandbox, "print(total(prices))", lesson(steps), step=2, accepted=[early])
    assert outcome["verdict"].status == "verified"


def test_a_program_is_given_no_import_by_what_runs_before_it(sandbox: SandboxExecutor) -> None:
    setup = "```python setup\nprices = []\n```\n"
    code = "def total(numbers):\n    return sum(numbers) if io else 0\n"
    assert grade(sandbox, code, lesson(setup + TOTAL))["verdict"].status != "verified"


DRAWN = """\
## Double

Write `double(n)`.

```python tests
assert double(1) == 2
```

```python solution
def double(n):
    return 2 * n
```

## Add twice

Write `twice(numbers)`.

```python tests
import random

# Adds twice each number.
for _ in range(20):
    numbers = [random.randrange(1, 100) for _ in range(5)]
    assert twice(numbers) == solution.twice(numbers)
```

```python solution
def twice(numbers):
    return sum(map(double, numbers))
```
"""


@pytest.mark.parametrize(
    ("body", "status"),
    [
        ("return 2 * sum(numbers)", "verified"),
        ("return 2 * sum(numbers[1:])", "failed"),
        ("numbers.clear(); return 0", "failed"),
        ("numbers[:] = [0] * len(numbers); return 0", "failed"),
        ("import sys; return sys.modules['solution'].twice(numbers)", "failed"),
    ],
)
def test_the_solution_knows_what_is_right_for_inputs_that_are_drawn_anew(
    sandbox: SandboxExecutor, body: str, status: str
) -> None:
    code = f"def twice(numbers):\n    {body}\n"
    assert grade(sandbox, code, lesson(DRAWN), step=2)["verdict"].status == status


def test_a_function_of_the_learners_may_be_called_solution(sandbox: SandboxExecutor) -> None:
    text = """\
## Write solution(n)

```python tests
assert solution(2) == 4
```

```python solution
def solution(n):
    return 2 * n
```
"""
    assert grade(sandbox, "def solution(n): return n + n", lesson(text))["verdict"].ok
    assert not grade(sandbox, "print(4)", lesson(text))["verdict"].ok


def test_a_program_with_input_is_tested_with_each_input(sandbox: SandboxExecutor) -> None:
    tests = "## Double\n```yaml tests\n- {stdin: '2', output: '4', description: Doubles 2}\n"
    tests += "- {stdin: '5', output: '10'}\n```\n"
    right, wrong = "print(2 * int(input()))", "print(input(), 4)"
    assert grade(sandbox, right, lesson(tests))["verdict"].status == "verified"
    assert (
        grade(sandbox, wrong, lesson(tests))["verdict"].reason == "2 of 2 tests fail:\n- Doubles 2\n- Test 2"
    )


TRIANGLE = """\
## Triangle

Read n, and print a triangle of n rows.

```yaml tests
- {stdin: "3", output: "*\\n**\\n***\\n", description: Three rows.}
- {stdin: "1", output: "*\\n", description: One row.}
```

```yaml examples
- {stdin: "2", output: "*\\n**\\n"}
```
"""
ROWS = "for i in range(n): print(('*' * (i + 1))"
PRINTED = {
    "rows": (f"n = int(input())\n{ROWS})", "Right: 2 of 2 tests pass."),
    "a prompt": (f"n = int(input('How many? '))\n{ROWS})", "Right: 2 of 2 tests pass."),
    "blanks at the ends": (f"n = int(input())\n{ROWS} + ' ')\nprint()", "Right: 2 of 2 tests pass."),
    "one line": (f"n = int(input())\n{ROWS}, end=' ')", "1 of 2 tests fail:\n- Three rows."),
    "blanks before": (f"n = int(input())\n{ROWS}.rjust(n))", "1 of 2 tests fail:\n- Three rows."),
}
ENDED = {
    "division by zero": ("n = int(input())\nprint(1 / 0)", "ZeroDivisionError (line 2)"),
    "a second line": ("n = int(input())\nm = input()", "EOFError (line 2)"),
    "no input is needed for it": ("n = int('x')", "invalid literal for int() with base 10: 'x' (line 1)"),
    "a secret as text": ("n = input()\nraise ValueError(n)", "ValueError (line 2)"),
    "a secret as type": ("n = input()\nraise type(n, (Exception,), {})()", "Exception (line 2)"),
}


@pytest.mark.parametrize("case", PRINTED.values(), ids=PRINTED)
def test_what_is_printed_is_compared_line_by_line(sandbox: SandboxExecutor, case: tuple[str, str]) -> None:
    code, reason = case
    assert grade(sandbox, code, lesson(TRIANGLE))["verdict"].reason == reason


def test_lines_that_differ_are_shown_side_by_side(sandbox: SandboxExecutor) -> None:
    check = GradeChain(lesson(TRIANGLE), sandbox, against="examples")
    reason = check.invoke({"code": PRINTED["one line"][0]})["verdict"].reason
    assert reason.splitlines()[-3:] == ["expected | printed", "*        | * **", "**       | (no line)"]


@pytest.mark.parametrize("case", ENDED.values(), ids=ENDED)
def test_an_error_is_that_of_the_run_with_the_input(sandbox: SandboxExecutor, case: tuple[str, str]) -> None:
    code, error = case
    told = everything(grade(sandbox, code, lesson(TRIANGLE)))
    assert error in told
    assert "'3'" not in told


@pytest.mark.slow
def test_a_program_that_only_waits_is_nobodys_fault() -> None:
    of = lesson(TRIANGLE, "limits: {seconds: 0.5}")
    with SandboxExecutor(limits=of.limits) as executor:
        outcome = grade(executor, "import time\nn = input()\ntime.sleep(60)", of)
    assert (outcome["verdict"].status, outcome["results"]["gradable"]) == ("unverified", False)


POINTS = """\
## Two functions

```python tests
# Doubles.
# points: 3
assert double(2) == 4

# Halves.
assert half(4) == 2

# points: 2
# Does both.
def test_both():
    assert half(double(3)) == 4
```
"""
EARNED = {
    "all but one": ("def double(n): return 2 * n\ndef half(n): return n // 2", 3 + 1),
    "one": ("def double(n): return 2 * n\ndef half(n): return 0", 3),
    "none": ("def double(n): return 0\ndef half(n): return 9", 0),
    "no function": ("x = 1", 0),
}


@pytest.mark.parametrize("case", EARNED.values(), ids=EARNED)
def test_each_test_gives_its_points(sandbox: SandboxExecutor, case: tuple[str, float]) -> None:
    code, points = case
    results = grade(sandbox, code, lesson(POINTS))["results"]
    assert (results["points"], results["max_points"]) == (points, 6)
    assert not any("points" in test["name"] for test in results["tests"])


def test_a_program_that_reads_has_points_for_each_input(sandbox: SandboxExecutor) -> None:
    tests = "- {stdin: '2', output: '4', points: 5}\n- {stdin: '0', output: '1'}\n"
    of = lesson(f"## Double\n```yaml tests\n{tests}```\n")
    results = grade(sandbox, "print(2 * int(input()))", of)["results"]
    assert (results["points"], results["max_points"]) == (5, 6)


PASTED = {
    "a fence": f"```python\n{RIGHT}```",
    "prompts": ">>> def total(numbers):\n...     return sum(numbers)\n...",
    "a byte order mark": f"\ufeff{RIGHT}",
    "a magic": f"%matplotlib inline\n{RIGHT}",
}


@pytest.mark.parametrize("code", PASTED.values(), ids=PASTED)
def test_what_is_around_a_pasted_program_is_left_out(sandbox: SandboxExecutor, code: str) -> None:
    assert grade(sandbox, code)["verdict"].reason == "Right: 2 of 2 tests pass."


def test_a_step_that_builds_on_another_says_so(sandbox: SandboxExecutor) -> None:
    first = "## One\n```python tests\nassert one() == 1\n```\n```python solution\ndef one(): return 1\n```\n"
    second = "## Two\n```python tests\nassert two() == one() + 1\n```\n"
    of, code = lesson(f"{first}\n{second}"), "def two(): return 2"
    outcome = grade(sandbox, code, of, step=2)
    assert outcome["verdict"].reason.startswith("This exercise builds on step 1. Solve that one first.")
    assert not outcome["results"]["gradable"]
    assert grade(sandbox, code, of, step=2, accepted=["def one(): return 1"])["verdict"].ok


def test_a_comment_above_an_import_is_about_the_test_below(sandbox: SandboxExecutor) -> None:
    tests = "```python tests\n# first\nassert f(1) == 1\n\n# about files\nimport io\nassert f(2) == 3\n```\n"
    reason = grade(sandbox, "def f(x): return x", lesson(f"## F\n{tests}"))["verdict"].reason
    assert reason == "1 of 2 tests fail:\n- about files"


def test_messages_are_in_the_language_of_the_lesson(sandbox: SandboxExecutor) -> None:
    outcome = grade(sandbox, "def total(numbers):\n    return 0\n", lesson(front="language: es"))
    assert outcome["verdict"].reason.startswith("Fallan 1 de 2 pruebas:")


def test_examples_are_checked_for_free_and_tell_everything(sandbox: SandboxExecutor) -> None:
    check = GradeChain(lesson(), sandbox, against="examples")
    outcome = check.invoke({"code": "def total(numbers): return 4"})
    assert "total([1, 2]) gave 4, expected 3" in outcome["verdict"].reason


def test_terminal_codes_of_a_program_are_not_shown(sandbox: SandboxExecutor) -> None:
    outcome = GradeChain(lesson(), sandbox, against="examples").invoke(
        {"code": "def total(numbers): return '\\x1b[31m'"}
    )
    assert "\x1b" not in outcome["verdict"].reason


async def test_it_is_a_chain_like_all_others(sandbox: SandboxExecutor) -> None:
    chain = GradeChain(lesson(), sandbox)
    outcome = await chain.ainvoke({"code": RIGHT})
    assert outcome["verdict"].status == "verified"
    assert {"code", "step", "accepted"} == set(chain.get_input_schema().model_fields)
    streamed = sum(chain.stream({"code": RIGHT}), {})["results"]  # type: ignore[call-overload]
    for test in (*streamed["tests"], *outcome["results"]["tests"]):
        assert test.pop("seconds") < 2
    assert streamed == outcome["results"]


@pytest.mark.parametrize("state", [{"step": 9}, {"step": 0}, {"accepted": "x"}, {"code": b"x"}])
def test_bad_input_is_an_error(sandbox: SandboxExecutor, state: dict[str, Any]) -> None:
    with pytest.raises(CodeChainsError):
        GradeChain(lesson(), sandbox).invoke({"code": RIGHT, **state})


def test_an_executor_that_cannot_run_tests_is_refused() -> None:
    with pytest.raises(ConfigurationError, match="can run tests"):
        GradeChain(lesson(), ScriptedExecutor(lambda code: ""))


FACTORIAL = (
    "## Factorial\n```python tests\n# Is right.\nassert factorial(5) == 120\nassert factorial(0) == 1\n```\n"
)


@pytest.mark.parametrize(
    "code",
    [
        "x = 1",
        "def factoral(n): return 1",
        "def other(n): return 'go'\nfactorial = other",
        "factorial = None",
        "factorial = 120",
    ],
)
def test_a_function_that_python_has_as_well_must_be_the_learners(sandbox: SandboxExecutor, code: str) -> None:
    assert grade(sandbox, code, lesson(FACTORIAL))["verdict"].status == "failed"


def test_a_function_of_the_learners_may_be_called_as_one_of_pythons(sandbox: SandboxExecutor) -> None:
    code = "def own(n): return n * own(n - 1) if n else 1\nfactorial = own"
    assert grade(sandbox, code, lesson(FACTORIAL))["verdict"].status == "verified"


AROUND = [
    "Here is my program:\n```python\n{code}\n```\nIt works!",
    "In [1]: def total(numbers):\n   ...:     return sum(numbers)\n",
]


@pytest.mark.parametrize("pasted", AROUND)
def test_a_program_between_what_was_pasted_with_it_is_found(pasted: str, sandbox: SandboxExecutor) -> None:
    assert grade(sandbox, pasted.replace("{code}", RIGHT))["results"]["status"] == "pass"


@pytest.mark.slow
@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("    while True: print('x' * 1000)", "prints more than is allowed"),
        ("    while True: pass", "takes longer than"),
    ],
)
def test_a_function_that_meets_a_limit_is_told_which(body: str, said: str, sandbox: SandboxExecutor) -> None:
    assert said in grade(sandbox, f"def total(numbers):\n{body}")["verdict"].reason


def test_whoever_uses_what_an_earlier_step_makes_is_told_to_solve_that_one_first(
    sandbox: SandboxExecutor,
) -> None:
    first = "## Helper\n\n```python tests\nassert helper() == 1\n```\n\n```python solution\ndef helper(): return 1\n```\n"
    of = lesson(first + TOTAL)
    outcome = grade(sandbox, "def total(numbers):\n    return helper()", of, step=2)
    assert outcome["verdict"].reason.startswith("This exercise builds on step 1. Solve that one first.")
    assert not outcome["results"]["gradable"]


RECURSIVE = {
    "by its name": "def f(n): return n and f(n - 1)",
    "by way of another": "def f(n): return n and g(n - 1)\ndef g(n): return f(n)",
    "as a lambda": "f = lambda n: n and f(n - 1)",
    "as a method": "class A:\n    def f(self, n): return n and self.f(n - 1)",
}


def said(rules: str, code: str, language: str = "en") -> list[str]:
    """Return what rules say of a program."""
    found = [problem for check in read_rules(rules, language)[0] for problem in check(code)]  # type: ignore[union-attr]
    return [problem.message for problem in found]  # type: ignore[union-attr]


@pytest.mark.parametrize("code", RECURSIVE.values(), ids=RECURSIVE)
def test_each_form_of_recursion_is_one(code: str) -> None:
    rule = "require: [recursion]"
    assert said(rule, code) == []
    assert said(rule, "def f(n): return n") == ["use recursion (a function that calls itself) here"]


def test_rules_are_said_in_the_language_of_the_lesson() -> None:
    assert said("forbid: [while, loop]", "while x: pass", "es") == [
        "`while` no se puede usar aquí",
        "un bucle no se puede usar aquí",
    ]


@pytest.mark.slow
def test_each_test_has_its_time_and_what_it_is_worth(sandbox: SandboxExecutor) -> None:
    tests = "# Waits.\n# points: 3\nassert total([1]) == 1\n\n# Never ends.\nassert total([]) == 0\n"
    of = lesson(f"## Total\n\n```python tests\n{tests}```\n", front="limits: {seconds: 1}")
    code = (
        "import time\ndef total(numbers):\n    while not numbers: pass\n    time.sleep(0.2)\n    return 1\n"
    )
    results = grade(sandbox, code, of)["results"]
    first, second = results["tests"]
    assert (first["points"], first["seconds"] > 0.2, second["seconds"]) == (3, True, None)
    assert (results["points"], results["max_points"]) == (3, 4)


def test_a_test_can_reveal_more_or_less_than_the_others(sandbox: SandboxExecutor) -> None:
    tests = "# Adds one.\n# reveals: input\nassert total([4]) == 4\n\n# Adds none.\nassert total([]) == 0\n"
    of = lesson(f"## Total\n\n```python tests\n{tests}```\n")
    told = grade(sandbox, "def total(numbers): return 7", of)["verdict"].reason
    assert told == "2 of 2 tests fail:\n- Adds one. (with total([4]))\n- Adds none."
    yaml = "- {args: [[4]], expected: 4, reveals: input and expected}\n- {args: [[]], expected: 0}\n"
    of = lesson(f"## Total\n\n```yaml tests\n{yaml}```\n\n```python starter\ndef total(numbers): pass\n```\n")
    told = grade(sandbox, "def total(numbers): return 7", of)["verdict"].reason
    assert "total([4])" in told
    assert "total([])" not in told
    with pytest.raises(CodeChainsError, match="reveals must be one of"):
        lesson("## Total\n\n```yaml tests\n- {args: [1], expected: 1, reveals: all}\n```\n")
