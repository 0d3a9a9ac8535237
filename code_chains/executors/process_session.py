"""Sessions whose state is a process: what is the same wherever that process is."""

from __future__ import annotations

import os
import threading
from abc import abstractmethod
from collections.abc import Callable
from typing import Any

from code_chains.errors import SessionError
from code_chains.executors.base import Session
from code_chains.executors.limits import Limits
from code_chains.executors.outcomes import objections, rejected
from code_chains.executors.waiting import Operation
from code_chains.records import Execution

MAX_CHECKPOINTS = 8


class ProcessSession(Session):
    """A session whose state is a process. Each run is a fork of it, which replaces it if the program succeeded.

    Args:
        limits: Limits of one run.
    """

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        self._number = 0
        self._checkpoints: list[str] = []
        """Names of saved states, the oldest first."""
        self._lock = threading.Lock()
        self._end_reason: str | None = None
        self._pid = os.getpid()

    @abstractmethod
    def _change(self, command: dict[str, Any]) -> None:
        """Have the supervisor change the state, unless a run uses it."""

    @abstractmethod
    def _end(self, reason: str) -> None:
        """End the session, for the first reason that is given."""

    def rollback(self) -> None:
        """Return to the state before the last successful run.

        Raises:
            SessionError: There is none, or the session has ended.
        """
        self._change({"op": "rollback"})

    def checkpoint(self, name: str = "checkpoint") -> str:
        """Save the state with its files under a name; at most eight are held.

        Raises:
            SessionError: There are too many, or the session has ended.
        """
        if name not in self._checkpoints and len(self._checkpoints) >= MAX_CHECKPOINTS:
            raise SessionError(
                f"A session holds at most {MAX_CHECKPOINTS} checkpoints. Use one of these names again: {self._checkpoints}."
            )
        self._change({"op": "checkpoint", "name": name})
        self._checkpoints = [*(other for other in self._checkpoints if other != name), name]
        return name

    def restore(self, name: str = "checkpoint") -> None:
        """Return to a checkpoint, which is kept.

        Raises:
            SessionError: There is none of this name, or the session has ended.
        """
        if name not in self._checkpoints:
            raise SessionError(f"There is no checkpoint {name!r}; there are {self._checkpoints}.")
        self._change({"op": "restore", "name": name})

    def close(self) -> None:
        """End the session and everything that it started."""
        self._end("it was closed")

    def abandon(self, reason: str) -> None:
        """End the session without its process, which is gone."""
        self._end_reason = self._end_reason or reason

    def _checked(
        self,
        execution: Execution,
        check: Callable[[Execution], object] | None,
        undo: Callable[[], Operation[None]],
    ) -> Operation[Execution]:
        """Return the outcome of a run as its caller's check judges it; what is not accepted is undone."""
        if not execution.ok or check is None:
            return execution
        try:
            reasons = objections(check, execution)
        except BaseException:
            yield from undo()
            raise
        if not reasons:
            return execution
        yield from undo()
        return rejected(execution, reasons)

    def _occupy(self) -> None:
        """Keep others from using the state, until the lock is released."""
        if not self._lock.acquire(blocking=False):
            raise SessionError("The session is busy with another run. Use a session for each conversation.")

    def _check_owner(self) -> None:
        if self._pid != os.getpid():
            raise SessionError(
                "This session belongs to the process that this one was forked from. Open a new one."
            )

    def _check_open(self) -> None:
        if self._end_reason is not None:
            raise SessionError(
                f"The session has ended: {self._end_reason}. Open a new one; its state is gone."
            )
