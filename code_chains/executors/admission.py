"""How many runs there are at once, and who waits for a place."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import deque
from concurrent.futures import Future
from typing import TypeVar

from code_chains.errors import ExecutorError, OverloadedError
from code_chains.executors.drive import Steps, Turn

__all__ = ["Admission"]

T = TypeVar("T")
_all: weakref.WeakSet[Admission] = weakref.WeakSet()


class Admission:
    """Lets so many in at once. Others wait in the order in which they came, threads and tasks in one line.

    Args:
        places: How many are in at once.
        queue: How many may wait.
        patience: Seconds that each of them waits at most.
        busy: What is said of all places being taken.
    """

    def __init__(self, places: int, queue: int, patience: float, busy: str = "") -> None:
        self.places, self.queue, self.patience = places, queue, patience
        self._busy = busy or f"{places} programs run already"
        self.renew()
        _all.add(self)

    def renew(self) -> None:
        """Forget who is in and who waits; in a forked process those are the parent's."""
        self._taken = 0
        self._shut = False
        self._line: deque[Future[None]] = deque()
        # Its lock is reentrant: a stream that is collected as garbage leaves wherever that happens.
        self._left = threading.Condition()

    def through(self, steps: Steps[T]) -> Steps[T]:
        """Do something in a place; see `enter`."""
        yield from self.enter()
        try:
            return (yield from steps)
        finally:
            self.leave()

    def enter(self, patience: float | None = None) -> Steps[None]:
        """Wait for a place, which `leave` gives back. Whoever is cancelled meanwhile leaves the line.

        Args:
            patience: Seconds to wait at most, where it is not as long as for all.

        Raises:
            OverloadedError: Too many wait already, or one has waited for too long.
            ExecutorError: Nobody is let in any more.
        """
        turn, seconds = self._ask(), self.patience if patience is None else patience
        if turn is None:
            return
        try:
            yield Turn(turn, seconds)
        except BaseException:
            if not self._withdraw(turn):
                self.leave()
            raise
        if self._withdraw(turn):
            raise OverloadedError(f"Nothing was run: {self._busy}, and {seconds:.3g} seconds went by. Ask again later.")

    def check(self) -> None:
        """Refuse whoever could not even wait now; nothing is taken.

        Raises:
            OverloadedError: Too many wait already.
            ExecutorError: Nobody is let in any more.
        """
        with self._left:
            if self._shut:
                raise ExecutorError(
                    "Nothing is begun here any more: this is closed, or is being closed. Make a new one."
                )
            if self._taken >= self.places and len(self._line) >= self.queue:
                raise OverloadedError(f"Nothing was run: {self._busy}, and {len(self._line)} wait. Ask again later.")

    def leave(self) -> None:
        """Give a place to the next who waits, or back."""
        with self._left:
            while self._line:
                turn = self._line.popleft()
                if turn.set_running_or_notify_cancel():
                    turn.set_result(None)
                    return
            self._taken = max(0, self._taken - 1)
            self._left.notify_all()

    def shut(self, seconds: float) -> bool:
        """Let nobody in who has not been waiting, and wait for the others; whether all have left in time."""
        deadline = time.monotonic() + seconds
        with self._left:
            self._shut = True
            return self._left.wait_for(lambda: not self._taken, max(0.0, deadline - time.monotonic()))

    def _ask(self) -> Future[None] | None:
        """A turn in the line; None where there is a place at once."""
        with self._left:
            turn: Future[None] | None = None if self._taken < self.places else Future()  # It may collect garbage.
            self.check()
            if turn is None or self._taken < self.places:
                self._taken += 1
                return None
            self._line.append(turn)
            return turn

    def _withdraw(self, turn: Future[None]) -> bool:
        """Leave the line; False if there is a place by now."""
        with self._left:
            if turn in self._line:
                self._line.remove(turn)
            return turn.cancel()


def _after_fork() -> None:
    for admission in list(_all):
        admission.renew()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
