"""One way to wait for a place and for a box, for threads and for event loops."""

from __future__ import annotations

import asyncio
import concurrent.futures
import select
import time
from collections.abc import Generator
from concurrent.futures import Future
from dataclasses import dataclass
from typing import Literal, TypeVar

from code_chains.executors.pool import Fork

__all__ = ["Steps", "Turn", "Wait", "adrive", "drive"]

T = TypeVar("T")


@dataclass(frozen=True)
class Wait:
    """Wait until something holds of a fork, at most for some seconds."""

    fork: Fork
    until: Literal["ready", "done", "ended"]
    seconds: float

    @property
    def over(self) -> bool:
        """Whether it holds."""
        return bool(getattr(self.fork, self.until))


@dataclass(frozen=True)
class Turn:
    """Wait until one's turn has come, at most for some seconds."""

    come: Future[None]
    seconds: float


Steps = Generator[Wait | Turn, None, T]
"""What is to be done with a box: it yields what to wait for, and returns the outcome."""


def drive(steps: Steps[T]) -> T:
    """Go through the steps in this thread."""
    try:
        while True:
            step = next(steps)
            if isinstance(step, Turn):
                concurrent.futures.wait([step.come], step.seconds)
            else:
                _wait(step)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    finally:
        steps.close()


def _wait(wait: Wait) -> None:
    deadline = time.monotonic() + wait.seconds
    while not wait.over and (left := deadline - time.monotonic()) > 0:
        poll = select.poll()
        for descriptor in wait.fork.descriptors:
            poll.register(descriptor, select.POLLIN)
        for descriptor, _ in poll.poll(left * 1000):
            wait.fork.read(descriptor)


async def adrive(steps: Steps[T]) -> T:
    """Go through the steps on the running event loop, which goes on meanwhile. Cancelling ends the box."""
    try:
        while True:
            step = next(steps)
            if isinstance(step, Turn):
                await asyncio.wait([asyncio.wrap_future(step.come)], timeout=step.seconds)
            else:
                await _await(step)
    except StopIteration as end:
        return end.value  # type: ignore[no-any-return]
    finally:
        steps.close()


async def _await(wait: Wait) -> None:
    loop, over = asyncio.get_running_loop(), asyncio.Event()
    watched = wait.fork.descriptors

    def read(descriptor: int) -> None:
        wait.fork.read(descriptor)
        if descriptor not in wait.fork.descriptors:
            loop.remove_reader(descriptor)
        if wait.over:
            over.set()

    if wait.over:
        return
    try:
        for descriptor in watched:
            loop.add_reader(descriptor, read, descriptor)
        async with asyncio.timeout(wait.seconds):
            await over.wait()
    except TimeoutError:
        return
    finally:
        for descriptor in watched:
            loop.remove_reader(descriptor)
