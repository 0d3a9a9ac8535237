"""Sanity checks: outputs that are no answers."""

from __future__ import annotations

import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import BaseMessage

from code_chains import SandboxExecutor, create_code_chain
from code_chains.state import Execution
from code_chains.testing import ScriptedModel
from code_chains.verification.sanity import sanity_verdict
from code_chains.verification.sanity.failure_reports import (
    empty_output,
    found_nothing,
    reported_failure,
    sums_nothing,
)

FAILURES = [
    "Error: the file does not exist",
    "No files in the working directory.",
    "No file was attached",
    "Total:\nError reading file: [Errno 2] No such file or directory: 'data.csv'",
    "FileNotFoundError: data.csv",
    "An error occurred: list index out of range",
    "Could not convert the input.",
    "Failed to parse the table",
    "The column 'Betrag' was not found in the file.",
    "Usage: program.py FILE",
    "Please provide a valid path.",
    "File 'sales.csv' not found.",
    "Traceback (most recent call last):\n  File 'x', line 1\nKeyError: 'a'",
    "The result is path/to/your_file.csv",
    "Fehler: Datei nicht gefunden",
    "Invalid input.",
]
ANSWERS = [
    "Total: 15",
    "No prime numbers are below 2.",
    "There is no such word.",
    "The key is missing from neither list: 3",
    "Errors: 5",
    "Found 3 words, 2 not in the list",
    "yes",
    "The missing number is 7",
    "Data points: 12\nMean: 3.4",
    "Please, thank, you",
    "error rate 0.05",
    "None of them is negative.",
    "The useful life is 7 years",
]


@pytest.mark.parametrize("output", FAILURES)
def test_an_output_that_reports_a_failure_is_found(output: str) -> None:
    assert reported_failure("How many rows are there?", output)


@pytest.mark.parametrize("output", ANSWERS)
def test_an_answer_is_no_report_of_a_failure(output: str) -> None:
    assert not reported_failure("How many rows are there?", output)
    assert not empty_output("How many rows are there?", output)


@pytest.mark.parametrize(
    "query",
    [
        "Which error does 1/0 raise?",
        "Is 'abc' a valid number?",
        "What does this code print?",
        "Welche Fehlermeldung steht im Log?",
    ],
)
def test_questions_about_failures_may_be_answered_with_one(query: str) -> None:
    assert not reported_failure(query, "Error: division by zero")


@pytest.mark.parametrize(
    "output",
    [
        "None",
        "nan",
        "Mean: nan",
        "[]",
        "Rows: []",
        "Empty DataFrame\nColumns: [a]\nIndex: []",
        "<function f at 0x7f00>",
        "{}",
        "Result = None",
        "[nan, nan]",
        "{'mean': nan}",
        "(np.float64(nan),)",
        "price   NaN\ncount   NaN\ndtype: float64",
        "Books that came late: 0\nLongest delay in days: NaT",
        "Late ones: Empty DataFrame\nColumns: [a]\nIndex: []\nSum: 0.0",
    ],
)
def test_an_output_without_a_value_is_found(output: str) -> None:
    assert empty_output("What is the mean?", output)
    assert not empty_output("Which are negative, if any?", output)


@pytest.mark.parametrize(
    "output", ["{'a': nan, 'b': 2}", "[nan, 1]", "a   NaN\nb   2.0\ndtype: float64", "[[1, 2]]"]
)
def test_an_output_with_some_value_is_none_without(output: str) -> None:
    assert not empty_output("What is the mean?", output)


@pytest.mark.parametrize(
    "output",
    [
        "No row found for location 'Essex'",
        "No matching rows found.",
        "No 'World\\nPlugs' found in the 'Standard' column.",
        "There are no orders matching the name.",
        "Sorry, no record was found for Okoye.",
        "University of Essex not found",
        "'Essex' was not found in the column Location.",
        "Keine Zeile für Essex gefunden.",
        "Aucune ligne trouvée pour Essex",
        "No se encontró la universidad",
        "Nessuna riga trovata.",
        "Строка не найдена",
        "未找到匹配的行",
    ],
)
def test_an_output_that_nothing_was_found_is_a_doubt_unless_that_is_asked(output: str) -> None:
    assert found_nothing("When did the University of Essex gain its status?", output)
    assert not found_nothing("Is there a university in Essex?", output)
    assert not found_nothing("Does the list have Essex?", output)


@pytest.mark.parametrize(
    "output", ["1964", "No Time to Die", "found", "No. 5", "Lost and Found", "The Lost Ark\nNot found: 2"]
)
def test_an_answer_is_not_that_nothing_was_found(output: str) -> None:
    assert not found_nothing("Which title was first?", output)


@pytest.mark.parametrize(
    ("output", "is_nothing"),
    [
        ("Spent: 0.0", True),
        ("$0.00", True),
        ("Spent in 2024: 0,00", True),
        ("Late: 0", False),
        ("Spent: 0.05", False),
        ("10.0", False),
        ("", False),
    ],
)
def test_a_sum_of_nothing_has_decimals_and_a_count_none(output: str, is_nothing: bool) -> None:
    assert sums_nothing("What did I spend in April 2024?", output) == is_nothing
    assert not sums_nothing("What did I spend, if anything or nothing?", output)


SELECTING = "import pandas as pd\nd = pd.read_csv('e.csv')\nprint(d[d.month == 4].amount.sum())"
ADDING = SELECTING.replace("[d.month == 4]", "")


@pytest.mark.parametrize(("code", "is_doubted"), [(SELECTING, True), (ADDING, False)])
def test_a_zero_of_selected_rows_is_a_doubt(code: str, is_doubted: bool) -> None:
    values = {
        "query": "What did I spend in month 4?",
        "files": {"e.csv": b"month,amount\n1,2.5\n"},
        "execution": Execution(status="ok", stdout="0.0"),
    }
    verdict = sanity_verdict(values, code)
    assert (verdict is not None and verdict.reason.startswith("The result is zero")) == is_doubted


LONG = 10**5000


@pytest.mark.parametrize(
    "variables", [{"v": LONG}, {"v": [1, -LONG]}, {"v": {"x": LONG}}, {"v": LONG, "w": 4}]
)
def test_integers_that_have_no_text_are_looked_at_like_others(variables: dict[str, Any]) -> None:
    query = "How many bits has `v`?"
    values = {"query": query, "variables": variables, "execution": Execution(status="ok", stdout="16610")}
    assert sanity_verdict(values, "print(v.bit_length())") is None


VAST = f"0x{'f' * 6000}"
"""An integer that no float holds, and that has no decimal digits."""


@pytest.mark.parametrize("files", [{"e.csv": b"a,b\n1,2\n"}, {}], ids=["with a file", "without"])
@pytest.mark.parametrize(
    "query", ["What is a in 2025?", "Wie viel?", f"What is {'9' * 400} by 2?"], ids=["en", "de", "vast"]
)
@pytest.mark.parametrize(
    "code",
    [
        f"x = {VAST}\nprint(x)",
        f"print(df[df['a'] == {VAST}])",
        f"print([r for r in rows if r[{VAST}] in ('x', 'y')])",
        f"print(df['a'].max() > {VAST})",
        f"print(date(2020, 1, {VAST}))",
        f"print({'9' * 400} * 2)",
        f"x = float('{'9' * 400}')\nprint(x)",
        "x = 1e999\nprint(x * df['a'].sum())",
        "print(df[df['a'] == 1e999])",
        f"print(df.query('a == {VAST}'))",
        f"print(df.query('a == {'9' * 400}'))",
    ],
    ids=[
        "a name",
        "a cell",
        "a key",
        "a limit",
        "a day",
        "a factor",
        "a text",
        "infinity",
        "an infinite cell",
        "a query",
        "a query in decimals",
    ],
)
def test_numbers_that_no_float_holds_are_looked_at_like_others(code: str, query: str, files: Any) -> None:
    shown = {"f": {"x": "- file `e.csv`\n  columns: `a` (int), `b` (int)"}}
    execution = Execution(status="ok", stdout="17")
    values = {"query": query, "files": files, "profiles": shown, "execution": execution}
    verdict = sanity_verdict(values, code)
    assert verdict is None or verdict.by in ("provenance", "checks")


def test_large_variables_are_looked_at_in_part() -> None:
    values = {
        "query": "Sum v",
        "variables": {"v": [7] * 5_000_000},
        "execution": Execution(status="ok", stdout="1"),
    }
    began = time.process_time()
    sanity_verdict(values, "print(sum(v))")
    assert time.process_time() - began < 0.3


@given(st.text(max_size=300), st.text(max_size=300))
def test_looking_at_outputs_never_raises(query: str, output: str) -> None:
    assert reported_failure(query, output) in ("", *map(str.strip, output.splitlines()))
    assert empty_output(query, output) in (True, False)
    assert found_nothing(query, output) in (True, False)


@pytest.mark.parametrize(
    "output",
    [
        "the file " * 400,
        "a: " * 1300,
        "Empty DataFrame" + " " * 3900,
        "<" * 4000,
        "your_" * 800,
        "[" + "nan, " * 790 + "x]",
    ],
)
def test_looking_at_outputs_takes_linear_time(output: str) -> None:
    started = time.process_time()
    reported_failure("x", output)
    empty_output("x", output)
    found_nothing("x", output)
    assert time.process_time() - started < 1


def _asked(box: SandboxExecutor, query: str, *programs: str, **options: Any) -> dict[str, Any]:
    """Ask a model that writes one program after the other."""
    left = list(programs)
    seen: list[str] = []

    def reply(messages: list[BaseMessage]) -> str:
        seen.append(str(messages[-1].content))
        return f"```python\n{left.pop(0) if len(left) > 1 else left[0]}\n```"

    with create_code_chain(ScriptedModel(reply), executor=box, interpret=False, **options) as chain:
        return {**chain.invoke({"query": query}), "seen": seen}


def test_a_report_of_a_failure_is_never_an_answer(sandbox: SandboxExecutor) -> None:
    result = _asked(sandbox, "How many rows are in the table?", "print('Error: the file does not exist')")
    assert (result["verdict"].status, result["verdict"].by) == ("failed", "output")
    assert not result["verdict"].ok


def test_an_empty_output_is_accepted_if_the_model_insists(sandbox: SandboxExecutor) -> None:
    result = _asked(sandbox, "Which of 3, 5 and 8 are negative?", "print([n for n in (3, 5, 8) if n < 0])")
    assert (result["output"], result["verdict"].status) == ("[]", "unverified")
    assert len(result["seen"]) > 1


def test_tests_decide_alone(sandbox: SandboxExecutor) -> None:
    with create_code_chain(
        ScriptedModel(lambda messages: "```python\ndef f(n):\n    return 2 * n\nprint('Error: none')\n```"),
        executor=sandbox,
        interpret=False,
    ) as chain:
        result = chain.invoke({"query": "Write f, which doubles 4711.", "tests": "assert f(2) == 4"})
    assert result["verdict"].status == "verified"


def test_checks_can_be_switched_off(sandbox: SandboxExecutor) -> None:
    result = _asked(sandbox, "Which of 3, 5 and 8 are negative?", "print([])", checks="none")
    assert result["verdict"].by == "none"
    assert len(result["seen"]) == 1
