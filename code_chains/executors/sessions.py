"""Runs that keep state: a success commits, anything else leaves the state exactly as it was."""

from __future__ import annotations

import asyncio
import os
import threading
import time
from collections.abc import Callable, Generator, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING, Any, TypeVar

from code_chains.errors import ExecutorError, InputError, SessionError
from code_chains.executors.artifacts import Haul, collect, views
from code_chains.executors.base import Session
from code_chains.executors.drive import Steps, Wait, adrive, drive
from code_chains.executors.pool import Fork
from code_chains.executors.request import Request
from code_chains.state import ErrorReport, Execution

if TYPE_CHECKING:
    from code_chains.executors.sandbox import SandboxExecutor

__all__ = ["SandboxSession"]

CHECKPOINTS = 8
T = TypeVar("T")
Check = Callable[[Execution], object]


class SandboxSession(Session):
    """A session of a `SandboxExecutor`; made by its `session()`.

    The state is a process. Each run is a fork of it, which takes its place if the program ended well and is thrown away
    otherwise, with the files it changed. What does not survive from one run to the next, whatever its outcome: threads,
    processes that the program started, timers, and running event loops with their tasks and asynchronous generators. Open
    files stay open and share their position with the state before, so a position is not rolled back; neither is shared
    memory.
    """

    def __init__(self, executor: SandboxExecutor) -> None:
        self._executor = executor
        self._fork: Fork | None = None
        self._number = 0
        self._known: Mapping[str, tuple[int, int, int]] = {}
        self._saved: list[str] = []
        self._busy = threading.Lock()
        self._ended: str | None = None
        self._pid = os.getpid()

    @property
    def alive(self) -> bool:
        """Whether it can be used."""
        if self._fork is not None and self._ended is None and not self._busy.locked():
            self._listen()
        return self._ended is None

    def run(
        self,
        code: str,
        *,
        files: Mapping[str, Any] | None = None,
        variables: Mapping[str, Any] | None = None,
        check: Check | None = None,
    ) -> Execution:
        """Run a program in the state; see `Session.run`."""
        return drive(self._in_turn(self._run(code, files, variables, check)))

    async def arun(
        self,
        code: str,
        *,
        files: Mapping[str, Any] | None = None,
        variables: Mapping[str, Any] | None = None,
        check: Check | None = None,
    ) -> Execution:
        """Run a program in the state without blocking the event loop; see `Session.run`."""
        return await adrive(self._in_turn(self._run(code, files, variables, check)))

    def rollback(self) -> None:
        """Return to the state before the last run that went well.

        Raises:
            SessionError: There is none, or the session has ended.
        """
        drive(self._alone(self._whole(self._ask({"op": "back"}))))

    def checkpoint(self, name: str = "checkpoint") -> str:
        """Hold the state as it is now, with its files; at most eight are held.

        Raises:
            SessionError: There are too many, or the session has ended.
        """
        if name not in self._saved and len(self._saved) >= CHECKPOINTS:
            raise SessionError(
                f"A session holds at most {CHECKPOINTS} checkpoints. Give one of these names again: {self._saved}."
            )
        drive(self._alone(self._whole(self._ask({"op": "save", "name": name}))))
        self._saved = [*(other for other in self._saved if other != name), name]
        return name

    def restore(self, name: str = "checkpoint") -> None:
        """Return to a checkpoint, which stays.

        Raises:
            SessionError: There is none of this name, or the session has ended.
        """
        if name not in self._saved:
            raise SessionError(f"There is no checkpoint {name!r}; there are {self._saved}.")
        drive(self._alone(self._whole(self._ask({"op": "load", "name": name}))))

    def close(self) -> None:
        """End the session and everything that it started."""
        self._end("it was closed")

    # -- steps --------------------------------------------------------------------------------------------------------

    def _in_turn(self, steps: Steps[T]) -> Steps[T]:
        """A run, when there is a place for it. Who is refused or cancelled before that finds the state as it was."""
        return self._alone(self._executor.admission.through(self._whole(steps)))

    def _alone(self, steps: Steps[T]) -> Steps[T]:
        """One thing at a time."""
        if not self._busy.acquire(blocking=False):
            raise SessionError("The session is busy with another run. Use a session for each conversation.")
        try:
            return (yield from steps)
        finally:
            self._busy.release()

    def _whole(self, steps: Steps[T]) -> Steps[T]:
        """A box that broke or was cancelled half way ends the session."""
        try:
            return (yield from steps)
        except (ExecutorError, GeneratorExit, KeyboardInterrupt, asyncio.CancelledError) as error:
            if not isinstance(error, SessionError):
                self._end(f"a run was broken off ({type(error).__name__})")
            raise

    def _run(
        self, code: str, files: Mapping[str, Any] | None, variables: Mapping[str, Any] | None, check: Check | None
    ) -> Steps[Execution]:
        with Request(code, files, variables) as request:
            fork = yield from self._box()
            began = time.monotonic()
            self._number += 1
            request.send(fork, {"op": "cell", "number": self._number})
            yield Wait(fork, "done", self._executor.waiting)
            if fork.flooded and not fork.ended:
                fork.say({"op": "stop"})
            yield Wait(fork, "ended", self._executor.waiting)
            self._must_live(fork)
            if unusable := (fork.told or {}).get("unusable"):
                raise InputError(str(unusable))
            committed = bool((fork.told or {}).get("ended", {}).get("ok"))
            execution = self._outcome(fork, time.monotonic() - began, set(request.files))
        if committed and not execution.ok:  # It ended well, but had printed too much before that was seen.
            yield from self._ask({"op": "back"})
        if execution.ok and check is not None and not check(execution):
            yield from self._ask({"op": "back"})
            return _refused(execution)
        return execution

    def _outcome(self, fork: Fork, seconds: float, inputs: set[str]) -> Execution:
        fork.drain()
        haul = Haul(self._executor.limits.artifacts_bytes)
        if fork.root is not None and (fork.told or {}).get("ended", {}).get("ok"):
            collect(fork.root, haul, inputs=inputs, before=self._known)
        if len(fork.frames) > 1:
            views(fork.frames[1], haul)
        self._look_around(fork)
        return self._executor.execution(fork, seconds, haul)

    def _look_around(self, fork: Fork) -> None:
        """Know the files that are there, so that those of the next run can be told from them."""
        if fork.root is not None:
            seen = Haul(0)
            collect(fork.root, seen)
            self._known = seen.marks

    def _ask(self, message: dict[str, Any]) -> Steps[None]:
        fork = yield from self._box()
        fork.say(message)
        yield Wait(fork, "ended", self._executor.waiting)
        self._must_live(fork)
        if missing := (fork.told or {}).get("missing"):
            raise SessionError(str(missing))
        self._look_around(fork)

    def _box(self) -> Generator[Wait, None, Fork]:
        if self._pid != os.getpid():
            raise SessionError("This session belongs to the process that this one was forked from. Open a new one.")
        if self._fork is not None:
            self._listen()
        if self._ended is not None:
            raise SessionError(f"The session has ended: {self._ended}. Open a new one; its state is gone.")
        if self._fork is None:
            self._fork = yield from self._executor.take()
        return self._fork

    def _listen(self) -> None:
        """Notice a box that has ended by itself."""
        fork = self._fork
        if fork is not None:
            fork.read(fork.control.fileno())
            if fork.failed is not None:
                self._end(f"it was idle for {self._executor.idle:g} seconds, or its process was killed")

    def _must_live(self, fork: Fork) -> None:
        broken = (fork.told or {}).get("broken")
        if fork.failed is not None or broken or fork.told is None:
            self._end(str(broken or "its process was killed"))
            raise SessionError(f"The session has ended: {self._ended}. Open a new one; its state is gone.")

    def _end(self, reason: str) -> None:
        self._ended = self._ended or reason
        if self._fork is not None and self._pid == os.getpid():
            self._fork.close()
        self._fork = None
        self._executor.forget(self)


def _refused(execution: Execution) -> Execution:
    """An execution whose outcome was not accepted."""
    report = ErrorReport("CheckFailed", "The outcome was not accepted; the state is as it was before.")
    return replace(execution, status="error", error=report)
