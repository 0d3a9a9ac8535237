"""Operations that wait, written once for threads and for event loops.

An operation is a generator that yields what it waits for and returns its outcome; `drive` and `adrive` run
it.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import select
import time
from collections.abc import Callable, Generator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Protocol, TypeVar

__all__ = ["EventSource", "Operation", "Ticket", "Wait", "adrive", "drive"]

T = TypeVar("T")


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
    """Wait until a condition holds, which changes only by reading from a source, for at most some seconds."""

    source: EventSource
    condition: Callable[[], bool]
    seconds: float


@dataclass(frozen=True)
class Ticket:
    """Wait in a FIFO queue until a future is set, for at most some seconds."""

    future: Future[None]
    seconds: float


Operation = Generator[Wait | Ticket, None, T]


def drive(operation: Operation[T]) -> T:
    """Run an operation in this thread."""
    try:
        while True:
            effect = next(operation)
            if isinstance(effect, Ticket):
                concurrent.futures.wait([effect.future], effect.seconds)
            else:
                _wait(effect)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    finally:
        operation.close()


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
    try:
        while True:
            effect = next(operation)
            if isinstance(effect, Ticket):
                await asyncio.wait([asyncio.wrap_future(effect.future)], timeout=effect.seconds)
            else:
                await _await(effect)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    finally:
        operation.close()


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
