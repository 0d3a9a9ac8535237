"""Deadlines: calls that are abandoned when a budget runs out of time, or a request takes too long."""

from __future__ import annotations

import asyncio
import contextvars
import math
import queue
import threading
import time
from collections.abc import Awaitable, Callable, Iterator
from dataclasses import dataclass
from functools import partial
from operator import attrgetter
from typing import TypeVar

from langchain_core.callbacks import BaseCallbackHandler
from langchain_core.runnables import RunnableConfig

from code_chains.callbacks.budget import find_budgets, handlers_of
from code_chains.errors import BudgetError

T = TypeVar("T")


class RequestTimeout(BaseCallbackHandler):
    """A callback handler that limits each request to a model below the run it is attached to, with all that it streams.

    The time-out of a client is that of each piece: a server that drips a byte a second never meets it.

    Args:
        seconds: The limit.
    """

    ignore_llm = ignore_chain = ignore_chat_model = ignore_agent = ignore_retriever = ignore_retry = True
    ignore_custom_event = True

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds


@dataclass(frozen=True)
class Deadline:
    """When a call is abandoned.

    Attributes:
        at: The monotonic time.
        error: What is raised then.
    """

    at: float
    error: Exception

    @property
    def seconds_left(self) -> float:
        """Seconds until then, at least 0."""
        return max(0.0, self.at - time.monotonic())


def nearest_deadline(config: RunnableConfig) -> Deadline | None:
    """Return when a call that begins now is abandoned; None if nothing limits its time.

    Raises:
        BudgetError: The time of a budget is spent.
    """
    deadlines = list[Deadline]()
    for handler in handlers_of(config):
        if isinstance(handler, RequestTimeout):
            late = TimeoutError(f"The model did not answer within {handler.seconds:g} seconds.")
            deadlines.append(Deadline(time.monotonic() + handler.seconds, late))
    for budget in find_budgets(config):
        if "seconds" in budget.limits:
            budget.check_time()
            deadlines.append(Deadline(budget.deadline, BudgetError("seconds", budget.limits["seconds"])))
    return min(deadlines, key=attrgetter("at"), default=None)


def run_deadline(config: RunnableConfig) -> float:
    """Return the monotonic time at which the time of the first budget of a run is spent."""
    return min((budget.deadline for budget in find_budgets(config)), default=math.inf)


def run_with_deadline(deadline: Deadline, function: Callable[[], T]) -> T:
    """Call a function in a thread and wait no longer than until a deadline.

    Raises:
        BudgetError, TimeoutError: It took longer. The thread continues, and its result is discarded.
    """
    return next(stream_with_deadline(deadline, lambda: iter([function()])))


def stream_with_deadline(deadline: Deadline, open_stream: Callable[[], Iterator[T]]) -> Iterator[T]:
    """Yield what an iterator yields in a thread, until a deadline.

    Raises:
        BudgetError, TimeoutError: It took longer. The thread stops at the next item.
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

    threading.Thread(
        target=partial(contextvars.copy_context().run, run), daemon=True, name="code_chains-deadline"
    ).start()
    try:
        while True:
            try:
                item, error = results.get(timeout=deadline.seconds_left)
            except queue.Empty:
                raise deadline.error from None
            if isinstance(error, StopIteration):
                return
            if error is not None:
                raise error
            yield item  # type: ignore[misc]
    finally:
        abandoned.set()


async def arun_with_deadline(deadline: Deadline, call: Awaitable[T]) -> T:
    """Await something until a deadline, then cancel it.

    Raises:
        BudgetError, TimeoutError: It took longer.
    """
    try:
        async with asyncio.timeout(deadline.seconds_left) as clock:
            return await call
    except TimeoutError:
        if clock.expired():
            raise deadline.error from None
        raise
