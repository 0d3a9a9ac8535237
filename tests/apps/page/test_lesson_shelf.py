"""The lessons of the page, and the work of its clients at them."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from langchain_core.stores import InMemoryByteStore

from code_chains.apps.page.lessons import LessonShelf
from code_chains.apps.program_queue import ProgramQueue
from code_chains.errors import InputError
from code_chains.lessons.release import TEMPLATE

pytestmark = pytest.mark.kernel_sandbox


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "first.md").write_text(TEMPLATE)
    return tmp_path


@pytest.fixture
def shelf(folder: Path) -> Iterator[LessonShelf]:
    shelf = LessonShelf(folder, InMemoryByteStore())
    yield shelf
    shelf.close()


def test_a_folder_without_a_lesson_is_refused(tmp_path: Path) -> None:
    (tmp_path / "README.md").write_text("# Lessons\n")
    with pytest.raises(InputError, match=r"There is no lesson in .* code-chains lesson new writes one"):
        LessonShelf(tmp_path, InMemoryByteStore())


def test_a_broken_lesson_is_refused_with_its_line(folder: Path) -> None:
    (folder / "second.md").write_text("---\ntitle: x\ncolour: red\n---\n")
    with pytest.raises(InputError, match=r"(?s)second\.md.*line 3.*colour"):
        LessonShelf(folder, InMemoryByteStore())


def test_a_lesson_that_is_changed_is_read_again_and_a_broken_change_is_not(
    shelf: LessonShelf, folder: Path, caplog: pytest.LogCaptureFixture
) -> None:
    (folder / "first.md").write_text(TEMPLATE.replace("title:", "title: New", 1))
    assert [lesson.title.startswith("New") for lesson in shelf.lessons()] == [True]
    (folder / "first.md").write_text("---\ncolour: red\n---\n")
    assert [lesson.title.startswith("New") for lesson in shelf.lessons()] == [True]
    assert "stays as it was" in caplog.text


@pytest.mark.slow
async def test_learners_share_nothing_and_one_who_lost_a_session_is_told(shelf: LessonShelf) -> None:
    queue = ProgramQueue(2)
    desks = [shelf.desk(name, "first", queue) for name in ("ann", "bob")]
    desks[0].work.executor.max_sessions = 1
    for number, desk in enumerate(desks):
        desk.work.write(f"x = {number}")
        assert (await shelf.run(desk, "")).ok
    desks[0].work.write("print(x)")
    outcome = await shelf.run(desks[0], "")
    assert (outcome.error and outcome.error.type, desks[0].work.has_lost_state) == ("NameError", True)
    await shelf.forget("ann")
    assert shelf.desk("ann", "first", queue).work.code != "print(x)"
    assert shelf.desk("bob", "first", queue).work.code == "x = 1"


@pytest.mark.slow
async def test_whoever_submits_endless_loops_waits_for_others_from_then_on(shelf: LessonShelf) -> None:
    queue, (lesson,) = ProgramQueue(4), shelf.lessons()
    for learner, code in (
        ("ann", "def double(number): return 0"),
        ("ben", "def double(number):\n    while True: pass\n"),
    ):
        desk = shelf.desk(learner, lesson.name, queue)
        desk.work.write(code)
        await desk.perform(desk.work.submit)
    assert list(queue._slow_until) == ["ben"]
