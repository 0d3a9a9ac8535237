"""Work in threads that an event loop may stop waiting for."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TypeVar

__all__ = ["in_thread"]

T = TypeVar("T")


async def in_thread(work: Callable[[], T], *, unwanted: Callable[[T], object]) -> T:
    """Do something in a thread; if the task is cancelled meanwhile, its result is given back when it comes.

    A thread cannot be stopped. What it takes for a task that is gone (a lock, say) would be held for ever.

    Args:
        work: What to do.
        unwanted: Takes a result for which nobody waits any more.
    """
    doing = asyncio.ensure_future(asyncio.to_thread(work))

    def give_back(done: asyncio.Future[T]) -> None:
        if not done.cancelled() and done.exception() is None:
            unwanted(done.result())

    try:
        return await asyncio.shield(doing)
    except asyncio.CancelledError:
        doing.add_done_callback(give_back)
        raise
