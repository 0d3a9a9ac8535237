"""Work in threads for tasks that may be cancelled."""

from __future__ import annotations

import asyncio
import contextvars
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any, TypeVar

T = TypeVar("T")


async def in_thread(
    work: Callable[[], T], *, on_abandoned: Callable[[T], object], on_not_started: Callable[[], object]
) -> T:
    """Run a function in a thread; if the task is cancelled meanwhile, its result is released when it arrives.

    A thread cannot be stopped, and a resource that it acquires for a cancelled task (a lock, say) would be
    held forever. So the function always runs to its end, and the thread itself releases the result, even if
    the event loop has ended.

    Args:
        work: The function to run.
        on_abandoned: Releases a result for which no task waits.
        on_not_started: Called if no thread is available, so that the function does not run.
    """
    delivery: Future[T] = Future()
    is_accepted = True

    def run() -> T:
        if not is_accepted:  # The pool queued it before it raised.
            raise asyncio.CancelledError
        result = work()
        # Invariant: either the task receives the result, or it is released here.
        if delivery.set_running_or_notify_cancel():
            delivery.set_result(result)
        else:
            on_abandoned(result)
        return result

    try:
        future = asyncio.get_running_loop().run_in_executor(None, contextvars.copy_context().run, run)
    except RuntimeError:
        is_accepted = False
        on_not_started()
        raise
    try:
        return await asyncio.shield(future)  # Shielded, it starts even if the task is cancelled before.
    except BaseException:
        future.add_done_callback(_retrieve_exception)
        if not delivery.cancel():
            on_abandoned(delivery.result())
        raise


def _retrieve_exception(future: asyncio.Future[Any]) -> None:
    """Mark the exception of an abandoned future as retrieved, so that asyncio does not log it."""
    if not future.cancelled():
        future.exception()
