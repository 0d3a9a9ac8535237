"""Asked to end, a process lets what is under way end first: SIGTERM for servers and for the terminal."""

from __future__ import annotations

import signal
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from code_chains.code_chain import CodeChain

__all__ = ["GRACE", "TERMINATED", "WholeTurns", "drain_then"]

GRACE = 20.0
"""Seconds that what is under way may still take; orchestrators kill after some thirty."""
TERMINATED = 128 + signal.SIGTERM
_TOLD = 0.3
"""Seconds in which a server tells its clients what came of the last questions."""


def drain_then(chain: CodeChain, end: Callable[[], object]) -> None:
    """Refuse further questions, and end a server when those under way are answered, without waiting for that here."""

    def drain() -> None:
        chain.drain(GRACE)
        time.sleep(_TOLD)
        end()

    threading.Thread(target=drain, daemon=True).start()


class WholeTurns:
    """Lets a turn end that is under way in the main thread when SIGTERM comes; no other begins. A context manager.

    A second SIGTERM, or one between turns, ends the process at once.
    """

    def __init__(self) -> None:
        self._under_way = self._asked = False
        self._before: dict[int, Any] = {}

    def __enter__(self) -> WholeTurns:
        if threading.current_thread() is threading.main_thread():
            handlers = {signal.SIGTERM: self._end, signal.SIGALRM: _end_now}
            self._before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._before.items():
            signal.signal(number, handler)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """A turn."""
        self._under_way = True
        try:
            yield
        finally:
            self._under_way = False
            signal.setitimer(signal.ITIMER_REAL, 0)
        if self._asked:
            sys.exit(TERMINATED)

    def _end(self, number: int, frame: FrameType | None) -> None:
        if self._asked or not self._under_way:
            _end_now(number, frame)
        self._asked = True
        signal.setitimer(signal.ITIMER_REAL, GRACE)


def _end_now(number: int, frame: FrameType | None) -> None:
    sys.exit(TERMINATED)
