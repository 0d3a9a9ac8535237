"""The queue of the page's questions."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager

from code_chains.executors.limiter import ConcurrencyLimiter
from code_chains.executors.waiting import adrive


class RequestQueue:
    """Let so many requests run at once; the others wait in FIFO order and know their position.

    Args:
        max_running: How many run at once.
        max_queued: How many may wait. They do so without a timeout, as their users can stop them.
    """

    def __init__(self, max_running: int, max_queued: int) -> None:
        self._limiter = ConcurrencyLimiter(max_running, max_queued, math.inf)
        self._waiting: dict[object, Callable[[int], None]] = {}

    @asynccontextmanager
    async def slot(self, on_position: Callable[[int], None]) -> AsyncIterator[None]:
        """Wait for a slot, and hold it for the duration of the context.

        Args:
            on_position: Called with the position in the queue, from 1, whenever it changes, and with 0 at its
                end.

        Raises:
            OverloadedError: The queue is full.
        """
        await self._acquire(on_position)
        try:
            on_position(0)
            yield
        finally:
            self._limiter.release()

    async def _acquire(self, on_position: Callable[[int], None]) -> None:
        # Invariant: this dict and the limiter's queue have the same order, as no await separates joining the
        # two.
        request = object()
        self._waiting[request] = on_position
        on_position(len(self._waiting))
        try:
            await adrive(self._limiter.acquire())
        finally:
            del self._waiting[request]
            self._report_positions()

    def _report_positions(self) -> None:
        for position, on_position in enumerate(self._waiting.values(), 1):
            on_position(position)
