"""Progress survives restarts and changes of the lesson, loses nothing, and can be deleted."""

from __future__ import annotations

from datetime import datetime, timedelta
from pathlib import Path

import pytest
from langchain_core.stores import InMemoryByteStore

from code_chains import Lesson, SqliteStore, read_lesson
from code_chains.lessons import Progress

TESTS = "```python tests\nassert f(1) == 2\n```\n"
LESSON = f"---\ntitle: Loops\n---\n## One\n```python starter\nf = 0\n```\n{TESTS}\n## Read\n\nText\n## Two\n{TESTS}"


@pytest.fixture
def lesson() -> Lesson:
    return read_lesson(LESSON)


@pytest.fixture
def progress(lesson: Lesson) -> Progress:
    return Progress(InMemoryByteStore(), lesson, "ana")


def test_a_draft_is_what_was_last_written_and_at_first_the_starter(
    progress: Progress, lesson: Lesson
) -> None:
    one = lesson.steps[0]
    assert progress.draft(one) == "f = 0\n"
    progress.add("draft", one, code="f = 1\n")
    progress.add("hint", one, text="Think.")
    assert progress.draft(one) == "f = 1\n"


def test_the_next_step_is_the_first_that_was_not_accepted(progress: Progress, lesson: Lesson) -> None:
    one, read, two = lesson.steps
    assert progress.next_step() == one
    progress.add("attempt", one, code="wrong", status="fail")
    assert progress.next_step() == one
    progress.add("attempt", one, code="right", status="pass")
    assert progress.next_step() == two
    assert progress.is_done(read)
    assert progress.accepted(two) == ["right"]
    progress.add("attempt", two, code="r", status="pass")
    assert progress.next_step() is None


def test_it_is_there_after_a_restart(lesson: Lesson, tmp_path: Path) -> None:
    with SqliteStore(tmp_path / "lessons.sqlite") as store:
        Progress(store, lesson, "ana").add("draft", lesson.steps[0], code="kept")
    with SqliteStore(tmp_path / "lessons.sqlite") as store:
        assert Progress(store, lesson, "ana").draft(lesson.steps[0]) == "kept"
        assert Progress(store, lesson, "bea").draft(lesson.steps[0]) == "f = 0\n"


def test_each_event_has_its_time_in_utc_and_the_version_of_the_lesson(
    progress: Progress, lesson: Lesson
) -> None:
    progress.add("attempt", lesson.steps[0], code="x", status="fail")
    event = progress.events()[0]
    assert datetime.fromisoformat(event.time).utcoffset() == timedelta(0)
    assert event.lesson == lesson.digest


def test_a_changed_lesson_keeps_what_learners_did(progress: Progress, lesson: Lesson) -> None:
    progress.add("attempt", lesson.steps[0], code="right", status="pass")
    assert not progress.has_changed
    changed = read_lesson(LESSON.replace("## One", f"## Zero\n{TESTS}\n## One"))
    later = Progress(progress._store, changed, "ana")
    assert later.has_changed
    assert later.is_done(changed.steps[1])
    assert not later.is_done(changed.steps[0])


def test_two_windows_lose_nothing_of_each_other(progress: Progress, lesson: Lesson) -> None:
    other = Progress(progress._store, lesson, "ana")
    for number in range(10):
        progress.add("attempt", lesson.steps[0], code=str(number), status="fail")
        other.add("attempt", lesson.steps[0], code=str(number), status="fail")
    assert len(progress.of(lesson.steps[0], "attempt")) == 20


def test_all_of_it_can_be_deleted_and_nobody_elses(progress: Progress, lesson: Lesson) -> None:
    others = [Progress(progress._store, lesson, name) for name in ("an", "ana/x", "ana%2Fx")]
    for one in (progress, *others):
        one.add("draft", lesson.steps[0], code="x")
    progress.forget()
    assert progress.events() == []
    assert [len(other.events()) for other in others] == [1, 1, 1]


def test_a_damaged_entry_costs_itself_alone(progress: Progress, lesson: Lesson) -> None:
    progress.add("draft", lesson.steps[0], code="x")
    progress._store.mset([(f"{progress._prefix}0", b"{"), (f"{progress._prefix}1", b"[]")])
    assert len(progress.events()) == 1
