"""A learner's progress in a lesson, in any LangChain store: drafts, attempts and hints, each as one entry."""

from __future__ import annotations

import json
import uuid
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any, Literal
from urllib.parse import quote

from langchain_core.stores import BaseStore

from code_chains.lessons.lesson import Lesson, Step

Kind = Literal["draft", "attempt", "hint"]
PREFIX = "lessons"


@dataclass(frozen=True)
class Event:
    """What a learner did.

    Attributes:
        kind: What it was.
        step: The title of the step: a teacher may insert others before it.
        time: When, in UTC.
        lesson: The digest of the lesson's file at that time.
        code: The program.
        status: How an attempt was graded: `pass`, `fail` or `error`.
        counts: Whether it counts as an attempt.
        text: The hint.
        failed: What the tests that failed are about.
    """

    kind: Kind
    step: str
    time: str
    lesson: str
    code: str = ""
    status: str = ""
    counts: bool = True
    text: str = ""
    failed: Sequence[str] = ()


class Progress:
    """The progress of one learner in one lesson.

    Invariant: each event is an entry of its own, so that two windows of one learner lose nothing of each other.

    Args:
        store: Where it is kept, such as a `SqliteStore`, or `InMemoryByteStore()`.
        lesson: The lesson.
        learner: Who learns.
    """

    def __init__(self, store: BaseStore[str, bytes], lesson: Lesson, learner: str) -> None:
        self._store = store
        self.lesson: Lesson = lesson
        self._events: dict[str, Event | None] = {}
        self._prefix = f"{PREFIX}/{quote(learner, safe='')}/{quote(lesson.name, safe='')}/"

    def add(self, kind: Kind, step: Step, **values: Any) -> None:
        """Add what a learner does at a step; see `Event`."""
        now = datetime.now(UTC)
        key = f"{self._prefix}{now.isoformat(timespec='microseconds')}-{uuid.uuid4().hex[:8]}"
        event = {"kind": kind, "step": step.title, "time": now.isoformat(timespec="seconds")}
        data = json.dumps({**event, "lesson": self.lesson.digest, **values})
        self._store.mset([(key, data.encode())])

    def events(self) -> list[Event]:
        """Return all events, the first one first; an entry that cannot be read is left out."""
        keys = sorted(self._store.yield_keys(prefix=self._prefix))
        new = [key for key in keys if key not in self._events]
        # Invariant: an entry never changes.
        self._events |= dict(zip(new, map(_read, self._store.mget(new)), strict=True))
        return [event for key in keys if (event := self._events[key]) is not None]

    def of(self, step: Step, kind: Kind) -> list[Event]:
        """Return the events of one kind at a step."""
        return [event for event in self.events() if event.step == step.title and event.kind == kind]

    def draft(self, step: Step) -> str:
        """Return the learner's program at a step: the last draft or attempt, or else the starter."""
        events = [event for event in self.events() if event.step == step.title and event.kind != "hint"]
        starter = step.starter.code if step.starter else ""
        return events[-1].code if events else starter

    def accepted(self, step: Step) -> list[str]:
        """Return the programs of earlier steps that were accepted, the last one of each."""
        events = self.events()
        earlier = self.lesson.steps[: step.number - 1]
        return [code for other in earlier if (code := _accepted(events, other)) is not None]

    def is_done(self, step: Step) -> bool:
        """Whether a program was accepted at a step, or there is nothing to submit."""
        return not step.is_exercise or _accepted(self.events(), step) is not None

    def next_step(self) -> Step | None:
        """Return the first step that is not done; None after the last one."""
        events = self.events()
        return next((step for step in self.lesson.exercises if _accepted(events, step) is None), None)

    @property
    def has_changed(self) -> bool:
        """Whether the lesson was changed since the learner last worked at it."""
        events = self.events()
        return bool(events) and events[-1].lesson != self.lesson.digest

    def forget(self) -> None:
        """Delete all of it."""
        self._store.mdelete(list(self._store.yield_keys(prefix=self._prefix)))


def _read(data: bytes | None) -> Event | None:
    try:
        return Event(**json.loads(data or b""))
    except (ValueError, TypeError):
        return None


def _accepted(events: Sequence[Event], step: Step) -> str | None:
    """Return the last program that was accepted at a step."""
    passed = [event.code for event in events if event.step == step.title and event.status == "pass"]
    return passed[-1] if passed else None
