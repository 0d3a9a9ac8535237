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
