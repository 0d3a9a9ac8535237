"""A learner works at a lesson in the terminal, from the first line to the last exercise."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import nbformat
import pytest
from click.testing import CliRunner

from code_chains.apps.terminal import question_log
from code_chains.apps.terminal.cli import cli
from code_chains.lessons.release import TEMPLATE
from tests.conftest import OpenAI

pytestmark = [pytest.mark.slow, pytest.mark.kernel_sandbox]
Run = Callable[..., str]
RIGHT = ("/write", "def double(number):", "    return number + number", ".")
WRONG = ("/write", "def double(number):", "    return abs(number) * 2", ".")


@pytest.fixture
def learn(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Run a whole visit: its lines in, all that is shown out."""
    monkeypatch.setattr(question_log, "data_folder", lambda: tmp_path / "data")
    path = tmp_path / "first.md"
    path.write_text(
        TEMPLATE
        + "\n## Twice\n\nWrite `quadruple(n)`.\n\n```python tests\n# Is right.\nassert quadruple(2) == 8\n```\n"
    )

    def run(*lines: str, options: tuple[str, ...] = ()) -> str:
        done = CliRunner().invoke(cli, ["learn", str(path), *options], input="\n".join(lines) + "\n")
        assert done.exit_code == 0, done.output
        return done.output

    return run


def test_a_learner_reads_writes_runs_checks_and_submits(learn: Run) -> None:
    shown = learn(*RIGHT, "/run", "/check", "/submit", "/exit")
    assert "Step 1 of 2: Double a number" in shown
    assert "assert double(4) == 8" in shown
    assert "(no output)" in shown
    assert "Right: 1 of 1 tests pass." in shown
    assert "Right: 2 of 2 tests pass." in shown
    assert "-6" not in shown


def test_a_wrong_program_is_told_what_fails_and_nothing_hidden(learn: Run) -> None:
    shown = learn(*WRONG, "/submit", "/hint", "/hint", "/hint")
    assert "- Doubles a negative number. Is there a condition" in shown
    assert "Which operator multiplies?" in shown
    assert "`return`" in shown
    assert "There are no more hints for this step." in shown
    assert "-3" not in shown


def test_the_work_is_there_after_a_restart_and_earlier_programs_are_built_on(learn: Run) -> None:
    learn(*RIGHT, "/submit")
    shown = learn("/step", "/write", "def quadruple(n): return double(double(n))", ".", "/submit", "/step 1")
    assert "Step 2 of 2: Twice" in shown
    assert "1 ✓ Double a number (2 of 2 points, attempts: 1)" in shown
    assert "That was the last exercise." in shown
    assert "Step 1 of 2: Double a number (done)" in shown
    assert "return number + number" in shown


def test_runs_keep_their_state_and_undo_works(learn: Run) -> None:
    shown = learn(
        *(
            "/write",
            "n = 5",
            ".",
            "/run",
            "/write",
            "n = n + 1; print(n)",
            ".",
            "/run",
            "/undo",
            "/run",
            "/run",
        )
    )
    assert [line for line in shown.splitlines() if line.isdecimal()] == ["6", "6", "7"]


def test_a_program_reads_what_stands_behind_run(learn: Run) -> None:
    shown = learn("/write", "print(int(input()) + int(input()))", ".", "/run 2 40", "/run")
    assert "(input: 2 40)" in shown
    assert "42" in shown
    assert "EOFError" in shown


def test_an_error_is_shown_with_its_line(learn: Run) -> None:
    assert "ZeroDivisionError: division by zero (line 2)" in learn("/write", "x = 1", "x / 0", ".", "/run")


def test_what_cannot_be_done_is_told(learn: Run) -> None:
    shown = learn("/next", "/undo", "/edit none.py", "/nonsense", "/step 9", "what now?", "/help")
    for said in (
        "This step is not done yet",
        "There is no run to undo",
        "cannot be read",
        "Unknown command /nonsense",
        "The lesson has no step 9",
        "Questions in words need a model",
        "have it graded by the hidden tests",
    ):
        assert said in shown


def test_a_report_counts_what_learners_did(learn: Run, tmp_path: Path) -> None:
    learn(*WRONG, "/submit", "/hint", *RIGHT, "/submit")
    arguments = ["lesson", "report", str(tmp_path / "first.md"), "--store"]
    done = CliRunner().invoke(cli, [*arguments, str(tmp_path / "data" / "lessons.sqlite")])
    assert "1,Double a number,1,1,2,2,1,Doubles a negative number." in done.output
    missing = CliRunner().invoke(cli, arguments[:-1])
    assert "Nobody has worked at a lesson yet" in missing.output


def test_work_can_be_deleted(learn: Run) -> None:
    learn(*RIGHT, "/submit", "/forget")
    assert "(done)" not in learn("/show")


def test_a_question_in_words_is_answered_and_a_leak_is_not(learn: Run, openai_server: OpenAI) -> None:
    leak = "Write `return 2 * number`."
    openai_server.script = lambda messages: (
        "def double(n): ..." if "Write the Python" in str(messages[0]) else leak
    )
    options = ("-m", "test", "--base-url", openai_server.base_url)
    shown = learn(*WRONG, "/submit", "Why is it wrong?", options=options)
    assert leak not in shown
    assert "I have no hint that would not give the answer away." in shown
    openai_server.script = lambda messages: "What is `abs(-3)`?"
    assert "What is `abs(-3)`?" in learn("Why is it wrong?", options=options)


def test_the_work_is_a_notebook_for_nbgrader_without_anything_hidden(
    learn: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    shown = learn(*RIGHT, "/export double.ipynb", "/export double.txt", "/export no/double.ipynb")
    content = (tmp_path / "double.ipynb").read_text()
    notebook = nbformat.from_dict(json.loads(content))  # type: ignore[no-untyped-call]
    nbformat.validate(notebook)
    roles = {cell.id: cell.metadata.nbgrader for cell in notebook.cells}
    program = next(cell for cell in notebook.cells if cell.id == "step-1-program")
    assert "number + number" in "".join(program.source)
    assert (roles["step-1-program"].solution, roles["step-1-examples"].grade) == (True, True)
    assert "double(-3)" not in content
    assert "Name the notebook" in shown
    assert "cannot be written" in shown
