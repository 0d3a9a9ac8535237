"""Operations that wait, written once for threads and for event loops.

An operation is a generator that yields what it waits for and returns its outcome; `drive` and `adrive` run
it, `stream` and `astream` also yield what is printed meanwhile.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import select
import time
from collections.abc import AsyncGenerator, Callable, Generator
from concurrent.futures import Future
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeVar

T = TypeVar("T")

OUTPUT_INTERVAL_S = 0.1
"""Seconds between two parts of output, so that a program that prints fast does not flood its readers."""


class EventSource(Protocol):
    """Something with descriptors to watch; `read` takes in what has arrived on one of them."""

    @property
    def descriptors(self) -> tuple[int, ...]:
        """Descriptors to watch for reading; empty once it is closed."""
        ...

    def read(self, descriptor: int) -> None:
        """Take in what can be read without blocking."""
        ...


@dataclass(frozen=True)
class Wait:
    """Wait until a condition holds, which changes only by reading from a source, for at most some seconds.

    Attributes:
        source: What is read meanwhile.
        condition: Whether waiting is over.
        seconds: How long to wait at most.
        take_output: Returns what was printed since the last call, if something may be printed meanwhile.
    """

    source: EventSource
    condition: Callable[[], bool]
    seconds: float
    take_output: Callable[[], str] | None = None


@dataclass(frozen=True)
class Ticket:
    """Wait in a FIFO queue until a future is set, for at most some seconds."""

    future: Future[None]
    seconds: float


@dataclass(frozen=True)
class Blocking:
    """Call a function that blocks, which is done in a thread on an event loop; its outcome is sent to the operation.

    Attributes:
        function: What is called.
        cancel: What ends it if the caller is cancelled; it may block as well.
    """

    function: Callable[[], Any]
    cancel: Callable[[], object] = bool


Effect = Wait | Ticket | Blocking
Operation = Generator[Effect, Any, T]
TURNS: ContextVar[Callable[[Operation[Any]], Operation[Any]] | None] = ContextVar(
    "code_chains_turns", default=None
)
"""What a host wraps around each run of a program on the event loop, so that it waits for its turn: in a task, and in the
tasks that it starts."""


def in_turn(operation: Operation[T]) -> Operation[T]:
    """Return a run that waits for its turn, if a host has it wait."""
    wrap = TURNS.get()
    return operation if wrap is None else wrap(operation)


def blocking(function: Callable[[], T], cancel: Callable[[], object] = bool) -> Operation[T]:
    """Return the operation that calls a function; see `Blocking`."""
    outcome: T = yield Blocking(function, cancel)
    return outcome


def drive(operation: Operation[T]) -> T:
    """Run an operation in this thread."""
    outcome: Any = None
    try:
        while True:
            outcome = _perform(operation.send(outcome))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    finally:
        operation.close()


def stream(operation: Operation[T]) -> Generator[str | T, None, None]:
    """Run an operation in this thread; yield output as it is printed, and last the outcome."""
    outcome: Any = None
    try:
        while True:
            effect = operation.send(outcome)
            if isinstance(effect, Wait) and effect.take_output:
                for part in _parts(effect):
                    _wait(part)
                    if text := effect.take_output():
                        yield text
                outcome = None
            else:
                outcome = _perform(effect)
    except StopIteration as end:
        yield end.value
    finally:
        operation.close()


def _parts(wait: Wait) -> Generator[Wait, None, None]:
    """Yield a wait in parts, until it is over. Invariant: time that a reader takes for output does not count."""
    left = wait.seconds
    while left > 0 and not wait.condition():
        started = time.monotonic()
        yield replace(wait, seconds=min(left, OUTPUT_INTERVAL_S))
        left -= min(OUTPUT_INTERVAL_S, time.monotonic() - started)


def _perform(effect: Effect) -> Any:
    if isinstance(effect, Blocking):
        return effect.function()
    if isinstance(effect, Ticket):
        concurrent.futures.wait([effect.future], effect.seconds)
    else:
        _wait(effect)
    return None


def _wait(wait: Wait) -> None:
    deadline = time.monotonic() + wait.seconds
    while not wait.condition() and (left := deadline - time.monotonic()) > 0:
        poll = select.poll()
        for descriptor in wait.source.descriptors:
            poll.register(descriptor, select.POLLIN)
        for descriptor, _ in poll.poll(left * 1000):
            wait.source.read(descriptor)


async def adrive(operation: Operation[T]) -> T:
    """Run an operation without blocking the event loop. Cancelling closes it."""
    outcome: Any = None
    try:
        while True:
            outcome = await _aperform(operation.send(outcome))
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    finally:
        operation.close()


async def astream(operation: Operation[T]) -> AsyncGenerator[str | T, None]:
    """Do what `stream` does, on an event loop; its async counterpart; keep in sync."""
    outcome: Any = None
    try:
        while True:
            effect = operation.send(outcome)
            if isinstance(effect, Wait) and effect.take_output:
                for part in _parts(effect):
                    await _await(part)
                    if text := effect.take_output():
                        yield text
                outcome = None
            else:
                outcome = await _aperform(effect)
    except StopIteration as end:
        yield end.value
    finally:
        operation.close()


async def _aperform(effect: Effect) -> Any:
    if isinstance(effect, Blocking):
        try:
            return await asyncio.to_thread(effect.function)
        except asyncio.CancelledError:
            await asyncio.shield(asyncio.to_thread(effect.cancel))
            raise
    if isinstance(effect, Ticket):
        await asyncio.wait([asyncio.wrap_future(effect.future)], timeout=effect.seconds)
    else:
        await _await(effect)
    return None


async def _await(wait: Wait) -> None:
    if wait.condition():
        return
    loop, is_over = asyncio.get_running_loop(), asyncio.Event()
    watched = wait.source.descriptors

    def read(descriptor: int) -> None:
        wait.source.read(descriptor)
        if descriptor not in wait.source.descriptors:
            loop.remove_reader(descriptor)
        if wait.condition():
            is_over.set()

    try:
        for descriptor in watched:
            loop.add_reader(descriptor, read, descriptor)
        async with asyncio.timeout(wait.seconds):
            await is_over.wait()
    except TimeoutError:
        return
    finally:
        for descriptor in watched:
            loop.remove_reader(descriptor)
