"""Where the learners of a lesson fail, how often, and after which hints they succeed."""

from __future__ import annotations

import pytest
from langchain_core.stores import InMemoryByteStore

from code_chains.errors import InputError
from code_chains.lessons import read_lesson
from code_chains.lessons.progress import Progress
from code_chains.lessons.report import grades, report

LESSON = read_lesson(
    "---\ntitle: A\n---\n## One\n```python tests\nassert x == 1\n```\n## Two\n```python tests\nassert y\n```\n"
)


@pytest.fixture
def store() -> InMemoryByteStore:
    return InMemoryByteStore()


def attempt(progress: Progress, status: str, *failed: str, counts: bool = True) -> None:
    progress.add("attempt", LESSON.step(1), code="x", status=status, counts=counts, failed=failed)


def test_attempts_hints_and_tests_are_counted_until_the_exercise_is_solved(store: InMemoryByteStore) -> None:
    ann, bob = (Progress(store, LESSON, name) for name in ("ann/1", "bob"))
    attempt(ann, "fail", "Is one.", "Is two.")
    ann.add("hint", LESSON.step(1), text="Look.")
    attempt(ann, "error", counts=False)
    attempt(ann, "pass")
    attempt(ann, "fail", "Is two.")
    attempt(bob, "fail", "Is one.")
    first, second = report(LESSON, store)
    assert first == {
        "step": 1,
        "title": "One",
        "learners": 2,
        "solved": 1,
        "attempts": 3,
        "median_attempts": 2,
        "hints": 1,
        "failed_most": "Is one. (2)",
        "helped_most": "Look. (1)",
    }
    assert (second["learners"], second["median_attempts"]) == (0, "")


def test_drafts_alone_are_no_work(store: InMemoryByteStore) -> None:
    Progress(store, LESSON, "ann").add("draft", LESSON.step(1), code="x = 1")
    assert report(LESSON, store)[0]["learners"] == 0


@pytest.mark.parametrize(
    ("system", "rows"),
    [
        ("moodle", [["Email address", "A: One", "A: Two"], ["ann@example.org", "1", "0"]]),
        (
            "canvas",
            [
                ["Student", "ID", "SIS Login ID", "Section", "A: One", "A: Two"],
                ["    Points Possible", "", "", "", "1", "1"],
                ["ann@example.org", "", "ann@example.org", "", "1", "0"],
            ],
        ),
    ],
)
def test_the_best_points_of_each_learner_are_a_table_to_import(
    store: InMemoryByteStore, system: str, rows: list[list[str]]
) -> None:
    ann = Progress(store, LESSON, "ann")
    ann.introduce("  ann@example.org ")
    for points in (0.5, 1.0, 0.0):
        ann.add("attempt", LESSON.step(1), code="x", status="fail", points=points)
    assert grades(LESSON, store, system) == rows


def test_a_learner_without_a_name_is_told_from_others_and_a_name_is_deleted(store: InMemoryByteStore) -> None:
    ann = Progress(store, LESSON, "ann")
    assert len(ann.label) == 8
    ann.introduce("Ann")
    ann.add("draft", LESSON.step(1), code="x")
    ann.forget()
    assert (ann.name, list(store.yield_keys())) == ("", [])
    with pytest.raises(InputError, match="at most 100"):
        ann.introduce("a" * 101)


def test_what_somebody_else_wrote_into_the_store_costs_its_entry_alone(store: InMemoryByteStore) -> None:
    ann = Progress(store, LESSON, "ann")
    ann.introduce("\x1b[2Jann\u202e")
    attempt(ann, "pass")
    (key,) = (key for key in store.yield_keys() if key.startswith("lessons/"))
    entry = store.mget([key])[0] or b""
    for number, points in enumerate((b"NaN", b"1e308", b"1e400"), 1):
        store.mset([(f"{key[:-1]}{number}", entry.replace(b'"points": 0.0', b'"points": ' + points))])
    store.store[f"{key[:-1]}9"] = 7  # type: ignore[assignment]
    assert grades(LESSON, store, "moodle")[1] == ["\ufffd[2Jann\ufffd", "1", "0"]
