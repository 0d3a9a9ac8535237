"""The queue of the programs that learners run: a slot is for a running program only, and everybody gets a fair share."""

from __future__ import annotations

import asyncio
import math
import time
from collections.abc import Callable
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import TypeVar

from code_chains.executors.waiting import Operation, Ticket

T = TypeVar("T")
_LONG_S, _REMEMBERED_S = 0.5, 120.0
"""A program is slow once it ran for longer than the first; a learner, whose program reached its limit, for the second."""
_MAX_LEARNERS = 1000


@dataclass(eq=False)
class _Request:
    """A program that waits for a slot or runs in one."""

    learner: str
    on_position: Callable[[int], None]
    ticket: Future[None] = field(default_factory=Future)
    started: float = math.inf


class ProgramQueue:
    """Let so many programs run at once, and so many of each learner. It belongs to one event loop.

    Of those who wait, whoever was served longest ago is next. Slow programs occupy at most half of the slots, so that
    endless loops delay nobody else: of learners who lately had one no more are started, and of others who turn out to
    have one so many more run, up to twice the number of slots.

    Args:
        max_running: How many run at once. The others wait without a timeout, as their users can stop them.
        max_each: How many of one learner.
    """

    def __init__(self, max_running: int, max_each: int = 1) -> None:
        self._max_each = max_each
        self._max_running, self._max_slow = max_running, max(1, max_running // 2)
        self._waiting: list[_Request] = []
        self._running: list[_Request] = []
        self._served: dict[str, float] = {}
        self._slow_until: dict[str, float] = {}

    def limit(
        self,
        operation: Operation[T],
        *,
        learner: str,
        on_position: Callable[[int], None],
        met_limit: Callable[[T], bool] = lambda outcome: getattr(outcome, "status", "") == "timeout",
    ) -> Operation[T]:
        """Run an operation in a slot.

        Args:
            operation: The run of a program.
            learner: Whose it is.
            on_position: Called with the position in the queue, from 1, whenever it changes, and with 0 at its end.
            met_limit: Whether a program met its limit of time, by what the operation returns.
        """
        request, has_ended = _Request(learner, on_position), False
        self._waiting.append(request)
        try:
            self._serve()
            if not request.ticket.done():
                yield Ticket(request.ticket, math.inf)
            outcome = yield from operation
            has_ended = not met_limit(outcome)
            return outcome
        finally:
            self._end(request, is_slow=not has_ended and time.monotonic() - request.started > _LONG_S)

    def _end(self, request: _Request, *, is_slow: bool) -> None:
        for requests in (self._waiting, self._running):
            if request in requests:
                requests.remove(request)
        if is_slow:
            self._slow_until[request.learner] = time.monotonic() + _REMEMBERED_S
        request.on_position(0)
        self._serve()

    def _serve(self) -> None:
        self._waiting.sort(
            key=lambda request: self._served.get(request.learner, 0.0)
        )  # Otherwise in FIFO order.
        while self._has_room():
            request = next(filter(self._may_start, self._waiting), None)
            if request is None:
                break
            self._start(request)
        for position, request in enumerate(self._waiting, 1):
            request.on_position(position)

    def _start(self, request: _Request) -> None:
        self._waiting.remove(request)
        self._running.append(request)
        request.started = time.monotonic()
        self._served.pop(request.learner, None)  # Invariant: the order of this dict is that of its values.
        self._served[request.learner] = request.started
        if len(self._served) > _MAX_LEARNERS:
            oldest = next(iter(self._served))
            del self._served[oldest]
            self._slow_until.pop(oldest, None)
        request.on_position(0)
        request.ticket.set_result(None)
        asyncio.get_running_loop().call_later(_LONG_S, self._serve)

    def _has_room(self) -> bool:
        surplus = max(0, self._slow_running() - self._max_slow)
        return len(self._running) < min(self._max_running + surplus, 2 * self._max_running)

    def _may_start(self, request: _Request) -> bool:
        if sum(running.learner == request.learner for running in self._running) >= self._max_each:
            return False
        return not self._is_slow(request) or self._slow_running() < self._max_slow

    def _slow_running(self) -> int:
        return sum(map(self._is_slow, self._running))

    def _is_slow(self, request: _Request) -> bool:
        now = time.monotonic()
        return now - request.started >= _LONG_S or self._slow_until.get(request.learner, 0.0) > now
