"""The lessons of a folder and the work of each client at them, in turns; `lesson_page` shows them."""

from __future__ import annotations

import asyncio
import logging
from collections import OrderedDict
from collections.abc import Callable
from contextlib import ExitStack
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from langchain_core.runnables import Runnable
from langchain_core.stores import BaseStore

from code_chains.apps.program_queue import ProgramQueue
from code_chains.errors import CodeChainsError, InputError, OverloadedError, SessionError
from code_chains.executors.base import Executor
from code_chains.executors.limits import Limits
from code_chains.executors.registry import resolve_executor
from code_chains.executors.waiting import adrive, blocking
from code_chains.lessons import LearnerWork, Lesson, Progress, read_lesson
from code_chains.lessons.hints import hints_of
from code_chains.lessons.report import report
from code_chains.state import Execution
from code_chains.storage.foreign import open_file

T = TypeVar("T")
_MAX_SESSIONS, _MAX_DESKS = 64, 1000
"""Sessions of an executor, and clients with a lesson open; beyond them whoever was there longest ago gives way."""
_log = logging.getLogger(__name__)


class Desk:
    """Where a client works at a lesson, in any number of tabs.

    Args:
        work: The client's work.
        client_id: The client.
        queue: Has programs wait for their turn.

    Attributes:
        is_busy: Whether something runs or waits.
        position: Its place in the queue, from 1; 0 while it runs.
        version: Changes with the work.
    """

    def __init__(self, work: LearnerWork, client_id: str, queue: ProgramQueue) -> None:
        self.work, self._client_id, self._queue = work, client_id, queue
        self.is_busy, self.position, self.version = False, 0, 0
        self._is_stopping = False

    async def perform(self, action: Callable[[], T], *, runs_program: bool = True) -> T:
        """Do something that blocks, one thing at a time; a program waits for its turn.

        Raises:
            CodeChainsError: It cannot be done.
        """
        if self.is_busy:
            raise InputError("Your last program still runs. Wait for it.")
        self.is_busy, self._is_stopping = True, False
        try:
            operation = blocking(action)
            if runs_program:
                operation = self._queue.limit(
                    operation,
                    learner=self._client_id,
                    on_position=partial(setattr, self, "position"),
                    met_limit=lambda _: self.work.met_limit,
                )
            return await adrive(operation)
        except SessionError:
            if self._is_stopping:
                raise InputError("Stopped.") from None
            raise
        finally:
            self.is_busy = False
            self.version += 1

    async def stop(self) -> None:
        """End the run of a program, and what earlier ones made."""
        self._is_stopping = True
        await asyncio.to_thread(self.work.release)


class LessonShelf:
    """The lessons in a folder, and the work of all clients at them.

    Args:
        folder: Has a Markdown file for each lesson; those without front matter are left out.
        store: Keeps the progress.
        model: Answers questions, and gives hints after the teacher's; None for no model.

    Raises:
        InputError: There is no lesson, or one cannot be read.
    """

    def __init__(
        self, folder: Path, store: BaseStore[str, bytes], model: Runnable[Any, Any] | None = None
    ) -> None:
        self._store, self._model = store, model
        paths = [path for path in sorted(folder.glob("*.md")) if _is_lesson(path)]
        self._lessons = {path: read_lesson(path, below=folder) for path in paths}
        if not self._lessons:
            raise InputError(f"There is no lesson in {str(folder)!r}. code-chains lesson new writes one.")
        self._changed = {path: path.stat().st_mtime_ns for path in self._lessons}
        self._executors: dict[Limits, Executor] = {}
        self._desks: OrderedDict[tuple[str, str], Desk] = OrderedDict()
        self._numbers: dict[str, int] = {}
        self._end = ExitStack()

    @property
    def has_model(self) -> bool:
        """Whether questions in words are answered."""
        return self._model is not None

    def lessons(self) -> list[Lesson]:
        """Return the lessons as they are now; one that cannot be read any more as it was. It may take seconds."""
        for path, before in self._changed.items():
            try:
                if (now := path.stat().st_mtime_ns) != before:
                    self._changed[path] = now
                    self._lessons[path] = read_lesson(path, below=path.parent)
            except (OSError, CodeChainsError) as error:
                _log.warning("The lesson in %s stays as it was: %s", path, error)
        return list(self._lessons.values())

    def progress(self, client_id: str, lesson: Lesson) -> Progress:
        """Return what a client did at a lesson."""
        return Progress(self._store, lesson, client_id)

    def desk(self, client_id: str, name: str, queue: ProgramQueue) -> Desk:
        """Return where a client works at a lesson, as `lessons` last returned it.

        Raises:
            InputError: There is no such lesson.
        """
        lesson = next((lesson for lesson in self._lessons.values() if lesson.name == name), None)
        if lesson is None:
            raise InputError(f"There is no lesson {name!r}.")
        desk = self._desks.pop((client_id, name), None)
        if desk is None or (desk.work.lesson.digest != lesson.digest and not desk.is_busy):
            executor = self._executor(lesson.limits)
            hints = hints_of(lesson, executor, self._model)
            work = LearnerWork(lesson, executor, self.progress(client_id, lesson), hints)
            if desk is not None:
                desk.work.close()
            desk = Desk(work, client_id, queue)
        self._desks[client_id, name] = desk
        self._make_room(len(self._desks) - _MAX_DESKS)
        return desk

    def desks(self) -> list[tuple[int, Desk]]:
        """Return where clients work, with a number of each client in the order in which they came."""
        for client_id, _ in self._desks:
            self._numbers.setdefault(client_id, len(self._numbers) + 1)
        return [(self._numbers[client_id], desk) for (client_id, _), desk in self._desks.items()]

    def reports(self) -> list[tuple[Lesson, list[dict[str, Any]]]]:
        """Return a row for each exercise of each lesson; see `lessons.report`. It blocks."""
        return [(lesson, report(lesson, self._store)) for lesson in list(self._lessons.values())]

    async def run(self, desk: Desk, stdin: str) -> Execution:
        """Run the program of a client. If there are too many sessions, whoever was here longest ago loses one.

        Raises:
            CodeChainsError: It cannot be run.
        """
        run = partial(desk.work.run, stdin)
        try:
            return await desk.perform(run)
        except OverloadedError:
            if not self._release_one(desk):
                raise
            return await desk.perform(run)

    def _release_one(self, desk: Desk) -> bool:
        """End the session that was used longest ago; return whether there was one to end."""
        same = (other for other in self._desks.values() if other.work.executor is desk.work.executor)
        return any(other.work.release() for other in same if other is not desk and not other.is_busy)

    async def forget(self, client_id: str) -> None:
        """Delete the work of a client."""
        for lesson in self._lessons.values():
            await asyncio.to_thread(self.progress(client_id, lesson).forget)
        for key in [key for key in self._desks if key[0] == client_id]:
            self._desks.pop(key).work.close()

    def close(self) -> None:
        """End all sessions and executors."""
        for desk in self._desks.values():
            desk.work.close()
        self._end.close()

    def _executor(self, limits: Limits) -> Executor:
        if limits not in self._executors:
            executor = self._end.enter_context(resolve_executor("strongest", limits))
            if executor.has_sessions:
                executor.max_sessions = _MAX_SESSIONS
            self._executors[limits] = executor
        return self._executors[limits]

    def _make_room(self, surplus: int) -> None:
        for key in [key for key, desk in self._desks.items() if not desk.is_busy][: max(0, surplus)]:
            self._desks.pop(key).work.close()


def _is_lesson(path: Path) -> bool:
    try:
        with open_file(path, below=path.parent) as file:
            return file.read(6).removeprefix(b"\xef\xbb\xbf").startswith(b"---")
    except OSError as error:
        _log.warning("%s is no lesson: %s.", path, error.strerror)
        return False
