"""Where the learners of a lesson fail, how often, and after which hints they succeed."""

from __future__ import annotations

import statistics
from collections import Counter
from typing import Any

from langchain_core.stores import BaseStore

from code_chains.lessons.lesson import Lesson, Step
from code_chains.lessons.progress import Event, Progress

COLUMNS: tuple[str, ...] = (
    "step",
    "title",
    "learners",
    "solved",
    "attempts",
    "median_attempts",
    "hints",
    "failed_most",
    "helped_most",
)


def report(lesson: Lesson, store: BaseStore[str, bytes]) -> list[dict[str, Any]]:
    """Return a row for each exercise of a lesson; see `COLUMNS`.

    `learners` are those who submitted a program or asked for a hint, `attempts` those that count, `median_attempts` those
    that a learner needed who solved it, `failed_most` the hidden test that failed in most of them, and `helped_most` the
    hint that was most often the last one before a program was accepted.

    Args:
        lesson: The lesson.
        store: Where its learners' progress is kept.
    """
    histories = [progress.events() for progress in Progress.of_all(store, lesson)]
    return [_row(step, histories) for step in lesson.exercises]


GRADES: tuple[str, ...] = ("moodle", "canvas")
"""Systems whose import reads the table of grades."""
_HEADS = {"moodle": ("Email address",), "canvas": ("Student", "ID", "SIS Login ID", "Section")}


def grades(lesson: Lesson, store: BaseStore[str, bytes], system: str) -> list[list[str]]:
    """Return a table of the points of each learner, with a row of titles, as a learning management system imports it.

    A learner's points at an exercise are those of the best attempt, and at a choice those of the first; the field is empty
    where the teacher has still to read an explanation. Moodle asks for the column that tells its users, and
    Canvas matches `SIS Login ID`: both have what learners called themselves.

    Args:
        lesson: The lesson.
        store: Where its learners' progress is kept.
        system: One of `GRADES`.
    """
    titles = [f"{lesson.title}: {step.title}" for step in lesson.exercises]
    possible = [step.points for step in lesson.exercises]
    rows = [[*_HEADS[system], *titles]]
    if system == "canvas":
        rows.append(["    Points Possible", "", "", "", *map(_as_text, possible)])
    for progress in Progress.of_all(store, lesson):
        who = [progress.label] if system == "moodle" else [progress.label, "", progress.label, ""]
        events = progress.events()
        rows.append([*who, *(_as_text(best_points(events, step)) for step in lesson.exercises)])
    return rows


def best_points(events: list[Event], step: Step) -> float | None:
    """Return the most points of an attempt at a step, or those of the first; None if the teacher has still to read one."""
    attempts = [event for event in events if event.step == step.title and event.kind == "attempt"]
    if step.task and step.task.counts_first:
        attempts = [event for event in attempts if event.counts][:1]
    points = [event.points for event in attempts]
    return (
        max((min(point or 0.0, step.points) for point in points), default=0.0) if None not in points else None
    )


def _as_text(points: float | None) -> str:
    return "" if points is None else f"{points:g}"


def _row(step: Step, histories: list[list[Event]]) -> dict[str, Any]:
    works = [_Work(step, events) for events in histories]
    there = [work for work in works if work.attempts or work.hints]
    solved = [work.needed for work in there if work.needed]
    failed = Counter(test for work in there for attempt in work.attempts for test in attempt.failed)
    helped = Counter(work.last_hint for work in there if work.last_hint)
    return {
        "step": step.number,
        "title": step.title,
        "learners": len(there),
        "solved": len(solved),
        "attempts": sum(len(work.attempts) for work in there),
        "median_attempts": statistics.median(solved) if solved else "",
        "hints": sum(work.hints for work in there),
        "failed_most": _most(failed),
        "helped_most": _most(helped),
    }


class _Work:
    """What a learner did at a step until a program was accepted for the first time."""

    def __init__(self, step: Step, events: list[Event]) -> None:
        self.attempts: list[Event] = []
        self.hints, self.needed, self.last_hint = 0, 0, ""
        hint = ""
        for event in events:
            if event.step != step.title or self.needed:
                continue
            if event.kind == "hint":
                self.hints, hint = self.hints + 1, event.text
            elif event.kind == "attempt" and event.counts:
                self.attempts.append(event)
                if event.status == "pass":
                    self.needed, self.last_hint = len(self.attempts), hint


def _most(counts: Counter[str]) -> str:
    """Return what was counted most often, with its number."""
    return "".join(f"{text} ({count})" for text, count in counts.most_common(1))
