"""`lesson check` finds what learners would stumble over, and `lesson release` hides what they must not see."""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from click.testing import CliRunner

from code_chains import SandboxExecutor
from code_chains.apps.terminal.cli import cli
from code_chains.errors import InputError
from code_chains.lessons import read_lesson
from code_chains.lessons.check import LessonCheck
from code_chains.lessons.mutants import mutants
from code_chains.lessons.release import TEMPLATE, release
from tests.conftest import ROOT

pytestmark = pytest.mark.kernel_sandbox


def findings(sandbox: SandboxExecutor, text: str, path: Path | None = None) -> list[str]:
    return [str(finding) for finding in LessonCheck(read_lesson(path or text), sandbox).findings()]


def changed(old: str, new: str) -> str:
    assert old in TEMPLATE
    return TEMPLATE.replace(old, new)


def test_the_lesson_that_new_writes_is_ready(sandbox: SandboxExecutor) -> None:
    assert findings(sandbox, TEMPLATE) == []


@pytest.mark.parametrize(
    ("old", "new", "said"),
    [
        ("return 2 * number", "return 3 * number", "the solution is not accepted: 2 of 2 tests fail"),
        ("    pass\n", "    return number + number\n", "the starter passes all tests"),
        ("return 2 * abs(number)", "return number * 2", "the tests accept this wrong program"),
        (
            "message: Doubles",
            "message: Halves",
            "learners are not told 'Halves a negative number.', but: 1 of 2",
        ),
        ("# Doubles a positive number.\n", "", "1 of 2 tests have no description"),
        ("print(3 * 5)", "print(3 * five)", "the program of the text fails: NameError"),
        ("its argument.", "its argument ([more](none.md)).", "'none.md' does not exist"),
        ("reveals:", "imports: [nosuchmodule]\nreveals:", "programs cannot import 'nosuchmodule'"),
        ("```python solution\ndef double(number):\n    return 2 * number\n```\n", "", "has no solution"),
        ("assert double(4) == 8", "assert double(4) == 9", "double(4) gave 8, expected 9"),
        ("double(-3) == -6", "double(nosuch) == 6", "the solution is not accepted: The test in line 35"),
    ],
)
def test_what_is_wrong_is_found(sandbox: SandboxExecutor, old: str, new: str, said: str) -> None:
    assert said in "\n".join(findings(sandbox, changed(old, new)))


def test_tests_that_accept_a_mutant_are_weak(sandbox: SandboxExecutor) -> None:
    weak = changed("assert double(21) == 42", "assert double(21) > 20")
    weak = weak.replace("assert double(-3) == -6", "assert double(-3) < 0").replace("2 * abs(number)", "0")
    assert "also accept a solution that is changed here: `3` for `2`" in "\n".join(findings(sandbox, weak))


def test_a_test_of_output_rejects_a_program_that_prints_everything(sandbox: SandboxExecutor) -> None:
    text = "---\ntitle: x\n---\n## Print\n```python tests\n# Prints 120.\nassert {} in output\n```\n"
    text += "```python solution\nprint(5 * 24)\n```\n"
    assert "prints all numbers" in "\n".join(findings(sandbox, text.format("'120'")))


def test_links_to_files_beside_the_lesson_are_found(sandbox: SandboxExecutor, tmp_path: Path) -> None:
    path = tmp_path / "lesson.md"
    path.write_text(
        TEMPLATE.replace("its argument.", "its argument ([a](<a b.txt>), [b](https://example.org)).")
    )
    (tmp_path / "a b.txt").touch()
    assert findings(sandbox, "", path) == []


@pytest.mark.parametrize(("compare", "accepts"), [("words", True), ("lines", False)])
def test_tests_that_accept_lines_on_one_line_are_weak(
    sandbox: SandboxExecutor, compare: str, accepts: bool
) -> None:
    tests = f'```yaml tests\n- {{output: "1\\n2\\n", compare: {compare}, description: Two lines.}}\n```\n'
    solution = "```python solution\nprint(1)\nprint(2)\n```\n"
    found = findings(sandbox, f"---\ntitle: T\n---\n## Print two lines\n{tests}{solution}")
    assert any("prints all on one line" in finding for finding in found) is accepts


def test_mutants_have_one_change_each_and_say_which() -> None:
    code = "def f(x):\n    if x < 3 and not x == 1:\n        return x + 1\n    return 0\n"
    found = mutants(code, limit=100)
    assert {"`x <= 3` for `x < 3`", "`x - 1` for `x + 1`", "`return None` for `return 0`"} <= {
        mutant.change for mutant in found
    }
    assert len(mutants(code, limit=5)) <= 5
    assert all(mutant.code != code for mutant in found)


def test_an_equality_that_always_holds_is_a_mutant() -> None:
    code = "class V:\n    def __eq__(self, o): return isinstance(o, V) and self.x == o.x\n"
    changes = {mutant.change for mutant in mutants(code, limit=100)}
    assert "`self.x == self.x` for `self.x == o.x`" in changes
    assert "`isinstance(o, V)` for `isinstance(o, V) and self.x == o.x`" in changes


@pytest.mark.parametrize("code", ["", "def f(:", "pass"])
def test_what_has_nothing_to_change_has_no_mutants(code: str) -> None:
    assert mutants(code, limit=5) == []


def test_the_learners_copy_has_no_secret_and_is_a_lesson() -> None:
    text = TEMPLATE.replace("## Double", "<!-- Bring chalk. -->\n## Double")
    copy = release(text)
    for secret in ("2 * number", "abs", "-6", "Which operator", "chalk"):
        assert secret not in copy
    assert read_lesson(copy).is_released
    assert read_lesson(copy).steps[0].examples
    with pytest.raises(InputError, match="already"):
        release(copy)


def test_a_teacher_goes_from_new_to_release_in_the_terminal(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    run = CliRunner().invoke
    assert run(cli, ["lesson", "new", "a.md"]).exit_code == 0
    assert "exists" in run(cli, ["lesson", "new", "a.md"]).output
    checked = run(cli, ["lesson", "check", "a.md"])
    assert checked.exit_code == 0
    assert "My first lesson is ready. Exercises: 1, errors: 0, warnings: 0." in checked.output
    assert run(cli, ["lesson", "release", "a.md"]).exit_code == 0
    assert Path("a-learner.md").is_file()
    assert run(cli, ["lesson", "check", "a-learner.md"]).exit_code == 2


@pytest.mark.slow
def test_the_exit_code_says_whether_a_lesson_is_ready(tmp_path: Path) -> None:
    path = tmp_path / "a.md"
    path.write_text(changed("# Doubles a positive number.\n", ""))
    run = CliRunner().invoke
    assert run(cli, ["lesson", "check", str(path)]).exit_code == 0
    assert run(cli, ["lesson", "check", "--strict", str(path)]).exit_code == 1
    path.write_text(changed("return 2 * number", "return 3 * number"))
    assert run(cli, ["lesson", "check", str(path)]).exit_code == 1
    path.write_text("no lesson")
    assert run(cli, ["lesson", "check", str(path)]).exit_code == 2


LESSONS = sorted((ROOT / "examples/lessons").glob("*.md"))


@pytest.mark.slow
@pytest.mark.parametrize("path", LESSONS, ids=lambda path: path.stem)
def test_each_lesson_of_the_examples_is_ready(path: Path) -> None:
    checked = CliRunner().invoke(cli, ["lesson", "check", "--strict", str(path)])
    assert checked.exit_code == 0, checked.output


def test_one_of_the_lessons_is_in_spanish() -> None:
    assert {"en", "es"} == {read_lesson(path).language for path in LESSONS}


def test_mutants_of_a_long_solution_are_made_one_by_one() -> None:
    start = time.process_time()
    found = mutants("\n".join(f"x{number} = {number} + 1" for number in range(500)), limit=20)
    assert (len(found), time.process_time() - start < 2) == (20, True)
    assert mutants("x = 1" + " + 1" * 3000, limit=5) == []
