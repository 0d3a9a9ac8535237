"""Limit how many runs there are at once; others wait in FIFO order."""

from __future__ import annotations

import os
import threading
import time
import weakref
from collections import deque
from concurrent.futures import Future
from typing import TypeVar

from code_chains.errors import ExecutorError, OverloadedError
from code_chains.executors.waiting import Operation, Ticket

T = TypeVar("T")
_limiters: weakref.WeakSet[ConcurrencyLimiter] = weakref.WeakSet()


class ConcurrencyLimiter:
    """Limit concurrency to `max_running`. Others wait in one FIFO queue, threads and tasks alike.

    Args:
        max_running: How many run at once.
        max_queued: How many may wait.
        timeout: Maximum seconds that each of them waits.
        busy: How error messages describe that all slots are in use.
        remedy: What error messages advise then.
    """

    max_queued: int
    max_running: int
    timeout: float

    def __init__(
        self,
        max_running: int,
        max_queued: int,
        timeout: float,
        busy: str = "",
        remedy: str = "Retry later.",
    ) -> None:
        self.max_running, self.max_queued, self.timeout = max_running, max_queued, timeout
        self._busy = busy or (
            f"all {max_running} slots are in use" if max_running > 1 else "the slot is in use"
        )
        self._remedy = remedy
        self.reset()
        _limiters.add(self)

    def reset(self) -> None:
        """Forget who runs and who waits: in a forked process those are the parent's."""
        self._running = 0
        self._is_shut_down = False
        self._queue: deque[Future[None]] = deque()
        # Reentrant, as a stream that is garbage-collected releases its slot wherever that happens.
        self._released = threading.Condition()

    def limit(self, operation: Operation[T]) -> Operation[T]:
        """Run an operation in a slot; see `acquire`."""
        yield from self.acquire()
        try:
            return (yield from operation)
        finally:
            self.release()

    def acquire(self, timeout: float | None = None) -> Operation[None]:
        """Wait for a slot, which `release` gives back. Cancelling leaves the queue.

        Args:
            timeout: Maximum seconds to wait, if it is not that of the limiter.

        Raises:
            OverloadedError: The queue is full, or the wait timed out.
            ExecutorError: The limiter is shut down.
        """
        ticket, seconds = self._join_queue(), self.timeout if timeout is None else timeout
        if ticket is None:
            return
        try:
            yield Ticket(ticket, seconds)
        except BaseException:
            # Invariant: a ticket that was served holds a slot, so either it is withdrawn or the slot is
            # released.
            if not self._withdraw(ticket):
                self.release()
            raise
        if self._withdraw(ticket):
            raise OverloadedError(
                f"Nothing was run: {self._busy}, and waiting timed out after {seconds:.3g} s. {self._remedy}"
            )

    def check(self) -> None:
        """Raise if nobody could even wait now; take no slot.

        Raises:
            OverloadedError: The queue is full.
            ExecutorError: The limiter is shut down.
        """
        with self._released:
            if self._is_shut_down:
                raise ExecutorError(
                    "Nothing was run: the executor or chain is closed, or shutting down. Create a new one."
                )
            if self._running >= self.max_running and len(self._queue) >= self.max_queued:
                raise OverloadedError(
                    f"Nothing was run: {self._busy}, and the queue of {self.max_queued} is full. {self._remedy}"
                )

    def release(self) -> None:
        """Pass a slot to the first in the queue, or give it back."""
        with self._released:
            while self._queue:
                ticket = self._queue.popleft()
                if ticket.set_running_or_notify_cancel():
                    ticket.set_result(None)
                    return
            self._running = max(0, self._running - 1)
            self._released.notify_all()

    def shut_down(self, seconds: float) -> bool:
        """Let nobody join the queue any more, wait for the others, and return whether all ended in time."""
        deadline = time.monotonic() + seconds
        with self._released:
            self._is_shut_down = True
            return self._released.wait_for(lambda: not self._running, max(0.0, deadline - time.monotonic()))

    def _join_queue(self) -> Future[None] | None:
        """Return a ticket; None if there is a free slot."""
        with self._released:
            ticket: Future[None] | None = None
            if self._running >= self.max_running:
                ticket = Future()  # Allocating may collect garbage that releases a slot, so look again below.
            self.check()
            if ticket is None or self._running < self.max_running:
                self._running += 1
                return None
            self._queue.append(ticket)
            return ticket

    def _withdraw(self, ticket: Future[None]) -> bool:
        """Leave the queue; return False if the ticket was served already."""
        with self._released:
            if ticket in self._queue:
                self._queue.remove(ticket)
            return ticket.cancel()


def available_processors() -> int:
    """Return how many processors this process may use, as far as the system tells."""
    if hasattr(os, "sched_getaffinity"):  # On Linux.
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def _after_fork() -> None:
    for limiter in list(_limiters):
        limiter.reset()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)
