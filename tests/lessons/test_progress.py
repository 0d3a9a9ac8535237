"""Progress survives restarts and changes of the lesson, loses nothing, and can be deleted."""

from __future__ import annotations

import json
from collections import Counter
from datetime import datetime, timedelta
from pathlib import Path

import pytest
from langchain_core.stores import InMemoryByteStore

from code_chains import InputError, SqliteStore
from code_chains.lessons import Lesson, Progress, read_lesson
from code_chains.lessons.progress import open_store

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
    (key,) = progress._store.yield_keys(prefix="lessons/")
    (data,) = progress._store.mget([key])
    assert data is not None
    wrong = [b"{", b"[]", b"5", b"[" * 100_000, b'{"kind": "draft"}', b"\xff", b'{"a":' * 50_000]
    wrong += [
        json.dumps({**json.loads(data), name: value}).encode()
        for name in ("kind", "step", "time", "lesson", "status", "counts", "text", "failed")
        for value in (None, 5, [5], {"a": 5}, "x" * (name in ("kind", "counts", "failed")) or 5)
        if (name, value) != ("counts", 5)
    ]
    broken = [(f"{key.rpartition('-')[0]}-{number:08x}", text) for number, text in enumerate(wrong)]
    names = [(f"{key.rpartition('/')[0]}/{name}", data) for name in ("0", "../x", "9" * 40, "", "~-00000000")]
    progress._store.mset([*broken, *names])
    assert len(progress.events()) == 1
    progress.add("draft", lesson.steps[0], code="y")
    assert progress.draft(lesson.steps[0]) == "y"


def test_the_latest_program_is_the_last_written_whatever_the_clock_says(
    progress: Progress, lesson: Lesson, monkeypatch: pytest.MonkeyPatch
) -> None:
    one, _, two = lesson.steps
    for number, seconds in enumerate((10**18, 10**18 - 3600 * 10**9, 0, 10**18 + 5, 7)):
        monkeypatch.setattr("time.time_ns", lambda seconds=seconds: seconds)
        progress.add("attempt", one, code=f"accepted {number}", status="pass")
        progress.add("draft", one, code=f"draft {number}")
        assert progress.draft(one) == f"draft {number}"
        assert progress.accepted(two) == [f"accepted {number}"]


def test_the_store_has_one_draft_a_step_and_two_programs(progress: Progress, lesson: Lesson) -> None:
    one, _, two = lesson.steps
    for number in range(50):
        for step in (one, two):
            progress.add("draft", step, code=f"{number}" * 1000)
            progress.add("attempt", step, code=f"{number}", status="pass" if number % 3 == 1 else "fail")
    kept = Counter(key.partition("/")[0] for key in progress._store.yield_keys())
    assert kept["programs"] <= 4
    assert kept["lessons"] <= 10
    assert len(progress._known) <= 10
    assert progress.accepted(two) == ["49"]


def test_attempts_without_an_end_are_bounded(progress: Progress, lesson: Lesson) -> None:
    for number in range(130):
        progress.add("attempt", lesson.steps[0], code=str(number), status="fail")
    assert 100 <= len(progress.events()) <= 101
    assert progress.draft(lesson.steps[0]) == "129"


def test_a_program_that_is_too_long_is_refused(progress: Progress, lesson: Lesson) -> None:
    with pytest.raises(InputError, match="at most 200,000 characters"):
        progress.add("draft", lesson.steps[0], code="x" * 200_001)


def test_a_learners_name_which_may_be_a_cookie_is_not_in_the_store(lesson: Lesson, tmp_path: Path) -> None:
    with open_store(tmp_path) as store:
        Progress(store, lesson, "the-secret-cookie").add("draft", lesson.steps[0], code="x")
    assert not any(b"cookie" in path.read_bytes() for path in tmp_path.iterdir())


@pytest.mark.parametrize("code", ["\0", "ü\r\n", "", "\u202e"])
def test_a_program_comes_back_as_it_was(progress: Progress, lesson: Lesson, code: str) -> None:
    progress.add("draft", lesson.steps[0], code=code)
    assert progress.draft(lesson.steps[0]) == code
    progress.add("draft", lesson.steps[0], code="\ud800")
    assert progress.draft(lesson.steps[0]) == "?"
