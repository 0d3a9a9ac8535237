"""Lessons in a notebook's cells."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from IPython.core.error import UsageError
from IPython.core.interactiveshell import InteractiveShell
from IPython.utils.capture import capture_output

from code_chains.apps.terminal import question_log
from code_chains.lessons.release import TEMPLATE

pytestmark = [pytest.mark.slow, pytest.mark.kernel_sandbox]
Run = Callable[..., str]
RIGHT = "def double(number):\n    return 2 * number\n"


@pytest.fixture
def lesson(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Run]:
    """Run `%lesson`, or `%%lesson` with a cell, and return what is shown."""
    monkeypatch.setattr(question_log, "data_folder", lambda: tmp_path / "data")
    path = tmp_path / "first.md"
    path.write_text(TEMPLATE)
    shell = InteractiveShell.instance()
    shell.run_line_magic("load_ext", "code_chains")
    magics = shell.find_magic("lesson").__self__

    def run(line: str, cell: str | None = None) -> str:
        with capture_output() as shown:
            if cell is None:
                shell.run_line_magic("lesson", line.replace("FILE", str(path)))
            else:
                shell.run_cell_magic("lesson", line, cell)
        return "\n".join(output.data["text/html"] for output in shown.outputs)

    yield run
    magics._open.close()
    InteractiveShell.clear_instance()


def test_a_lesson_is_read_checked_and_submitted_in_cells(lesson: Run) -> None:
    assert "returns twice its argument" in lesson("FILE")
    assert "<pre>1" in lesson("run", "print(1)")
    assert "Right: 1 of 1 tests pass." in lesson("check", RIGHT)
    assert "Right: 2 of 2 tests pass." in lesson("submit", RIGHT)
    assert "(done)" in lesson("show")
    assert "Which operator multiplies?" in lesson("hint")


def test_what_a_program_prints_is_no_html(lesson: Run) -> None:
    lesson("FILE")
    assert "&lt;img" in lesson("run", "print('<img src=x onerror=alert(1)>')")


@pytest.mark.parametrize(
    ("line", "cell", "said"),
    [
        ("hint", None, "%lesson FILE opens a lesson"),
        ("none.md", None, ".none.md. cannot be read"),
    ],
)
def test_what_cannot_be_done_is_told(lesson: Run, line: str, cell: str | None, said: str) -> None:
    with pytest.raises(UsageError, match=said):
        lesson(line, cell)


def test_a_program_needs_a_word_and_a_question_a_model(lesson: Run) -> None:
    lesson("FILE")
    with pytest.raises(UsageError, match="run, check, submit"):
        lesson("sumbit", RIGHT)
    with pytest.raises(UsageError, match="need a model"):
        lesson("Why is it wrong?")
