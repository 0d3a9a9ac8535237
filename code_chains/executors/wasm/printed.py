"""What programs in WebAssembly print: the host reads it itself, as what is in a pipe of its own outlives their process."""

from __future__ import annotations

import io
import threading
from collections.abc import Callable
from typing import IO, cast

READ_BYTES = 1 << 16


class Printed:
    """Reads a stream of a process to its end, in a thread of its own.

    Args:
        stream: The stream, which is closed at its end.
        stop: Kills the process.
    """

    def __init__(self, stream: IO[bytes], stop: Callable[[], None]) -> None:
        self._stream, self._stop = cast(io.BufferedReader, stream), stop
        self._changed = threading.Condition()
        self._taken, self._mark, self._limit = bytearray(), b"", 0
        self._has_ended = False
        threading.Thread(target=self._read, daemon=True, name="code_chains-wasm-printed").start()

    def expect(self, mark: bytes, limit: int) -> None:
        """Keep what follows.

        Args:
            mark: What the process prints behind it, which no program knows.
            limit: Bytes of text with which the process is killed.
        """
        with self._changed:
            self._taken, self._mark, self._limit = bytearray(), mark, limit

    def taken(self) -> bytes:
        """Wait for the mark or the end of the process; return what came before, up to the limit."""
        with self._changed:
            self._changed.wait_for(self._is_over)
            text, self._mark = self._taken.removesuffix(self._mark), b""
        return bytes(text[: self._limit])

    def _is_over(self) -> bool:
        return self._has_ended or self._taken.endswith(self._mark)

    def _read(self) -> None:
        with self._stream:
            while data := self._stream.read1(READ_BYTES):
                if self._is_too_much(data):
                    self._stop()
        with self._changed:
            self._has_ended = True
            self._changed.notify_all()

    def _is_too_much(self, data: bytes) -> bool:
        """Keep what was printed, unless it was between programs; return whether that is more than enough."""
        with self._changed:
            if not self._mark:
                return False
            self._taken += data
            self._changed.notify_all()
            return len(self._taken) >= self._limit + len(self._mark)
