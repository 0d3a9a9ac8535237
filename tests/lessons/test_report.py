"""Where the learners of a lesson fail, how often, and after which hints they succeed."""

from __future__ import annotations

import pytest
from langchain_core.stores import InMemoryByteStore

from code_chains.lessons import read_lesson
from code_chains.lessons.progress import Progress
from code_chains.lessons.report import report

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
