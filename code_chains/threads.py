"""Work in threads that an event loop may stop waiting for."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

__all__ = ["in_thread"]

T = TypeVar("T")


async def in_thread(work: Callable[[], T], *, unwanted: Callable[[T], object], unbegun: Callable[[], object]) -> T:
    """Do something in a thread; if the task is cancelled meanwhile, its result is given back when it comes.

    A thread cannot be stopped. What it takes for a task that is gone (a lock, say) would be held for ever. So the work is
    done in any case, and given back by the thread itself where the event loop has ended, too.

    Args:
        work: What to do.
        unwanted: Takes a result for which nobody waits any more.
        unbegun: Called where no thread can be had; then nothing is done.
    """
    handed: Future[T] = Future()
    begun = True

    def do() -> T:
        if not begun:  # It was queued all the same.
            raise asyncio.CancelledError
        result = work()
        if handed.set_running_or_notify_cancel():
            handed.set_result(result)
        else:
            unwanted(result)
        return result

    try:
        doing = asyncio.get_running_loop().run_in_executor(None, contextvars.copy_context().run, do)
    except RuntimeError:
        begun = False
        unbegun()
        raise
    try:
        return await asyncio.shield(doing)  # Shielded, it is begun even where the task is cancelled before.
    except BaseException:
        doing.add_done_callback(_seen)
        if not handed.cancel():
            unwanted(handed.result())
        raise


def _seen(done: asyncio.Future[Any]) -> None:
    """An error for which nobody waits any more is none to complain of."""
    if not done.cancelled():
        done.exception()
