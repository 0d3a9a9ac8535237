"""Deadlines: calls that are abandoned when a budget runs out of time."""

from __future__ import annotations

import asyncio
import contextvars
import math
import queue
import threading
from collections.abc import Awaitable, Callable, Iterator
from functools import partial
from typing import TypeVar

from langchain_core.runnables import RunnableConfig

from code_chains.callbacks.budget import Budget, find_budgets
from code_chains.errors import BudgetError

T = TypeVar("T")


def nearest_deadline(config: RunnableConfig) -> Budget | None:
    """Return the budget of a run with the least time left; None if time is not limited."""
    limited = [budget for budget in find_budgets(config) if "seconds" in budget.limits]
    return min(limited, key=lambda budget: budget.seconds_left or 0.0, default=None)


def run_deadline(config: RunnableConfig) -> float:
    """Return the monotonic time at which the time of the first budget of a run is spent."""
    return min((budget.deadline for budget in find_budgets(config)), default=math.inf)


def run_with_deadline(budget: Budget, function: Callable[[], T]) -> T:
    """Call a function in a thread and wait no longer than the budget has time.

    Raises:
        BudgetError: It took longer. The thread continues, and its result is discarded.
    """
    return next(stream_with_deadline(budget, lambda: iter([function()])))


def stream_with_deadline(budget: Budget, open_stream: Callable[[], Iterator[T]]) -> Iterator[T]:
    """Yield what an iterator yields in a thread, as long as the budget has time.

    Raises:
        BudgetError: It took longer. The thread stops at the next item.
    """
    results: queue.SimpleQueue[tuple[T | None, BaseException | None]] = queue.SimpleQueue()
    abandoned = threading.Event()

    def run() -> None:
        try:
            for item in open_stream():
                if abandoned.is_set():
                    return
                results.put((item, None))
            results.put((None, StopIteration()))
        except BaseException as error:
            results.put((None, error))

    budget.check_time()
    threading.Thread(
        target=partial(contextvars.copy_context().run, run), daemon=True, name="budget-deadline"
    ).start()
    try:
        while True:
            try:
                item, error = results.get(timeout=max(0.0, budget.seconds_left or 0.0))
            except queue.Empty:
                raise BudgetError("seconds", budget.limits["seconds"]) from None
            if isinstance(error, StopIteration):
                return
            if error is not None:
                raise error
            yield item  # type: ignore[misc]
    finally:
        abandoned.set()


async def arun_with_deadline(budget: Budget, call: Awaitable[T]) -> T:
    """Await something no longer than the budget has time, then cancel it.

    Raises:
        BudgetError: It took longer.
    """
    try:
        async with asyncio.timeout(max(0.0, budget.seconds_left or 0.0)) as clock:
            return await call
    except TimeoutError:
        if clock.expired():
            raise BudgetError("seconds", budget.limits["seconds"]) from None
        raise
