"""A learner's progress in a lesson, in any LangChain store: drafts, attempts and hints, each as one entry."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Literal, Self

from langchain_core.stores import BaseStore

from code_chains.conversations.recent_store import RecentStore
from code_chains.conversations.turns import is_turn_id, new_turn_id, serialize
from code_chains.errors import InputError
from code_chains.executors.inputs import MAX_CODE_CHARS
from code_chains.lessons.lesson import Lesson, Step
from code_chains.records import Record
from code_chains.records.printable import strip_control_chars
from code_chains.storage.foreign import parse_json
from code_chains.storage.sqlite import SqliteStore

Kind = Literal["draft", "attempt", "hint"]
EVENTS, PROGRAMS, NAMES = "lessons/", "programs/", "names/"
MAX_NAME_CHARS = 100
_MAX_ATTEMPTS, _MAX_TEXT_CHARS = 100, 20_000
"""Attempts at a step that are kept until one is accepted; and the length of a hint."""
_MAX_BYTES = 1 << 30


@contextmanager
def open_store(folder: Path | None) -> Iterator[BaseStore[str, bytes]]:
    """Open the store of all learners' progress: the entries unused for longest are deleted beyond a limit.

    Args:
        folder: The folder of its file; None for the memory of this process.
    """
    if folder is None:
        yield RecentStore()
        return
    with SqliteStore(folder / "lessons.sqlite", max_bytes=_MAX_BYTES) as store:
        yield store


@dataclass(frozen=True)
class Event(Record):
    """What a learner did. The program of a draft or an attempt is an entry for itself.

    Attributes:
        kind: What it was.
        step: The title of the step: a teacher may insert others before it.
        time: When, in UTC.
        lesson: The digest of the lesson's file at that time.
        status: How an attempt was graded: `pass`, `fail` or `error`.
        counts: Whether it counts as an attempt.
        text: The hint.
        failed: What the tests that failed are about.
        points: What it earned; None if the teacher has still to read it.
    """

    kind: Kind
    step: str
    time: str
    lesson: str
    status: str = ""
    counts: bool = True
    text: str = ""
    failed: tuple[str, ...] = ()
    points: float | None = 0.0


class Progress:
    """The progress of one learner in one lesson.

    Kept of a step are one draft, the attempts until one was accepted and the last that was, with its program, and the hints.

    Invariant: each event is an entry of its own, so that two windows of one learner lose nothing of each other; an entry
    never changes; and its id sorts after those of all events that were there, whatever the clock says.

    Args:
        store: Where it is kept, such as a `SqliteStore`, or `InMemoryByteStore()`.
        lesson: The lesson.
        learner: Who learns. Only a hash of it is stored: it may be a secret that grants access, such as a cookie.
    """

    def __init__(self, store: BaseStore[str, bytes], lesson: Lesson, learner: str) -> None:
        self._store = store
        self.lesson: Lesson = lesson
        self._known: dict[str, Event | None] = {}
        self._place = f"{_hash(learner)}/{_hash(lesson.name)}/"

    @classmethod
    def of_all(cls, store: BaseStore[str, bytes], lesson: Lesson) -> list[Self]:
        """Return the progress of each learner who ever worked at a lesson."""
        end = f"/{_hash(lesson.name)}/"
        found = []
        for place in sorted({key.rpartition("/")[0] + "/" for key in store.yield_keys(prefix=EVENTS)}):
            if place.endswith(end):
                found.append(cls(store, lesson, ""))
                found[-1]._place = place.removeprefix(EVENTS)
        return found

    @property
    def name(self) -> str:
        """How the learner is called by a teacher; empty if the learner did not say."""
        (data,) = self._store.mget([self._key(NAMES)])
        return data.decode("utf-8", "replace") if isinstance(data, bytes) else ""

    @property
    def label(self) -> str:
        """The name, or what tells the learner from others."""
        return self.name or self._place[:8]

    def introduce(self, name: str) -> None:
        """Keep the name, or the number, by which a teacher knows the learner.

        Raises:
            InputError: It is too long.
        """
        name = " ".join(strip_control_chars(name).split())
        if len(name) > MAX_NAME_CHARS:
            raise InputError(f"A name has at most {MAX_NAME_CHARS} characters.")
        self._store.mset([(self._key(NAMES), name.encode("utf-8", "replace"))])

    def add(self, kind: Kind, step: Step, *, code: str = "", **values: Any) -> None:
        """Add what a learner does at a step; see `Event`.

        Args:
            kind: What it is.
            step: The step.
            code: The program of a draft or an attempt.
            **values: Fields of the event.

        Raises:
            InputError: The program is too long.
        """
        if len(code) > MAX_CODE_CHARS:
            raise InputError(f"A program has at most {MAX_CODE_CHARS:,} characters. Yours has {len(code):,}.")
        earlier = self._events()
        values["text"] = values.get("text", "")[:_MAX_TEXT_CHARS]
        values["failed"] = tuple(values.get("failed", ()))
        event = Event(
            kind, step.title, datetime.now(UTC).isoformat(timespec="seconds"), self.lesson.digest, **values
        )
        name = new_turn_id(max(earlier, default=""))
        entries = [(self._key(EVENTS, name), serialize(event.to_dict()))]
        if kind != "hint":
            entries.append((self._key(PROGRAMS, name), code.encode("utf-8", "replace")))
        self._store.mset(entries)
        self._store.mdelete([*self._superseded(earlier, event)])

    def _superseded(self, earlier: Mapping[str, Event], new: Event) -> Iterator[str]:
        """Yield the keys of what a new event takes the place of, which is all that was there before it."""
        own = (
            {}
            if new.kind == "hint"
            else {name: event for name, event in earlier.items() if event.step == new.step}
        )
        passed = [name for name, event in own.items() if event.status == "pass"]
        failed = [name for name, event in own.items() if event.kind == "attempt" and name not in passed]
        kept = {*passed[:1], *failed[-_MAX_ATTEMPTS:]}
        if passed:  # What came later says nothing about how many it took.
            kept -= {name for name in failed if name > passed[0]}
        last = passed[-1:] if new.status != "pass" else []
        for name, event in own.items():
            if event.kind != "hint" and name not in last:
                yield self._key(PROGRAMS, name)
                if name not in kept:
                    yield self._key(EVENTS, name)

    def events(self) -> list[Event]:
        """Return all events, the first one first; an entry that cannot be read is left out."""
        return [*self._events().values()]

    def _events(self) -> dict[str, Event]:
        prefix = self._key(EVENTS)
        names = sorted(
            filter(is_turn_id, (key.removeprefix(prefix) for key in self._store.yield_keys(prefix=prefix)))
        )
        new = [name for name in names if name not in self._known]
        entries = self._store.mget([f"{prefix}{name}" for name in new]) if new else ()
        self._known |= dict(zip(new, map(_read, entries), strict=True))
        self._known = {name: self._known[name] for name in names}
        return {name: event for name, event in self._known.items() if event is not None}

    def _key(self, kind: str, name: str = "") -> str:
        return f"{kind}{self._place}{name}"

    def of(self, step: Step, kind: Kind) -> list[Event]:
        """Return the events of one kind at a step."""
        return [event for event in self.events() if event.step == step.title and event.kind == kind]

    def draft(self, step: Step) -> str:
        """Return the learner's program at a step: the last draft or attempt, or else the starter."""
        events = self._events().items()
        last = [name for name, event in events if event.step == step.title and event.kind != "hint"][-1:]
        return [step.initial, *self._programs(last)][-1]

    def accepted(self, step: Step) -> list[str]:
        """Return the programs of earlier steps that were accepted, the last one of each."""
        last = self._last_accepted()
        earlier = (other for other in self.lesson.steps[: step.number - 1] if other.form == "program")
        return self._programs([last[other.title] for other in earlier if other.title in last])

    def _last_accepted(self) -> dict[str, str]:
        """Return the last event of an accepted program, by the title of its step."""
        return {event.step: name for name, event in self._events().items() if event.status == "pass"}

    def _programs(self, names: Sequence[str]) -> list[str]:
        """Return the programs of events, as far as they are there."""
        entries = self._store.mget([self._key(PROGRAMS, name) for name in names]) if names else []
        return [data.decode("utf-8", "replace") for data in entries if isinstance(data, bytes)]

    def is_done(self, step: Step) -> bool:
        """Whether a program was accepted at a step, or there is nothing to submit."""
        return not step.is_exercise or step.title in self._last_accepted()

    def next_step(self) -> Step | None:
        """Return the first step that is not done; None after the last one."""
        done = self._last_accepted()
        return next((step for step in self.lesson.exercises if step.title not in done), None)

    @property
    def has_changed(self) -> bool:
        """Whether the lesson was changed since the learner last worked at it."""
        events = self.events()
        return bool(events) and events[-1].lesson != self.lesson.digest

    def forget(self) -> None:
        """Delete all of it."""
        kinds = (EVENTS, PROGRAMS, NAMES)
        self._store.mdelete([key for kind in kinds for key in self._store.yield_keys(prefix=self._key(kind))])


def _hash(name: str) -> str:
    return hashlib.sha256(name.encode("utf-8", "replace")).hexdigest()[:32]


def _read(data: bytes | None) -> Event | None:
    try:
        event = Event.from_dict(parse_json(data or b""))
        return event if event.points is None or math.isfinite(event.points) else None
    except (ValueError, TypeError, AttributeError):  # Anybody may have written the store.
        return None
