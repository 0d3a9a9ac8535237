"""Graceful shutdown on SIGTERM: running questions finish first, in servers and at the terminal."""

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
    from code_chains.assembly.code_chain import CodeChain

GRACE_PERIOD_S = 20.0
"""Seconds that running questions may still take; orchestrators usually kill after 30."""
TERMINATED_EXIT_CODE = 128 + signal.SIGTERM
_FLUSH_S = 1.0
"""Seconds in which a server sends the last answers to its clients."""


def drain_then(chain: CodeChain, end: Callable[[], object]) -> None:
    """Refuse further questions, and end a server once running ones are answered. This does not block."""

    def drain() -> None:
        chain.drain(GRACE_PERIOD_S)
        time.sleep(_FLUSH_S)
        end()

    threading.Thread(target=drain, daemon=True).start()


class TurnGuard:
    """Lets the turn in the main thread finish on SIGTERM, and then exits. A context manager.

    A second SIGTERM, or one between turns, ends the process at once. On Windows it does nothing, as no other process can
    send that signal there.
    """

    def __init__(self) -> None:
        self._is_running = self._is_terminating = False
        self._previous: dict[int, Any] = {}

    def __enter__(self) -> TurnGuard:
        if sys.platform != "win32" and threading.current_thread() is threading.main_thread():
            handlers = {signal.SIGTERM: self._terminate, signal.SIGALRM: _exit}
            self._previous = {number: signal.signal(number, handler) for number, handler in handlers.items()}
        return self

    def __exit__(self, *_: object) -> None:
        for number, handler in self._previous.items():
            signal.signal(number, handler)

    @contextmanager
    def turn(self) -> Iterator[None]:
        """Protect a turn."""
        self._is_running = True
        try:
            yield
        finally:
            self._is_running = False
            _exit_after(0)
        if self._is_terminating:
            sys.exit(TERMINATED_EXIT_CODE)

    def _terminate(self, number: int, frame: FrameType | None) -> None:
        if self._is_terminating or not self._is_running:
            _exit(number, frame)
        self._is_terminating = True
        _exit_after(GRACE_PERIOD_S)


def _exit_after(seconds: float) -> None:
    """Have the system send SIGALRM after so many seconds; never if they are 0."""
    if sys.platform != "win32":
        signal.setitimer(signal.ITIMER_REAL, seconds)


def _exit(number: int, frame: FrameType | None) -> None:
    sys.exit(TERMINATED_EXIT_CODE)
