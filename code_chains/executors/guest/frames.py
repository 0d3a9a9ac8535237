"""Parse what the program's process reports, on the host or beside the supervisor: untrusted, in bounded time and memory.

A frame is a length, that many bytes of JSON, and the binary data that the JSON announces: a result and rich
views are binary, as parsing them as JSON would cost many times their size.
"""

from __future__ import annotations

from typing import Any

from .untrusted import parse
from .wire import FRAME_HEADER, MAX_FRAME_BYTES

MAX_ITEMS = 8000
"""Items of a frame's JSON: an error with the variables of its frames, and the names of views."""
MAX_RESULT_BYTES = 1 << 20


class FrameReader:
    """Splits a stream into frames.

    Args:
        max_view_bytes: Bytes of the views of a frame.

    Attributes:
        garbled: Whether something was read that is no frame; nothing after it is parsed.
    """

    garbled: bool

    def __init__(self, max_view_bytes: int) -> None:
        self._max_view_bytes = max_view_bytes
        self.clear()

    def clear(self) -> None:
        """Discard everything that was read."""
        self._buffer, self._needed, self.garbled = bytearray(), FRAME_HEADER.size, False
        self._size: int | None = None
        self._frame: dict[str, Any] | None = None

    def feed(self, data: bytes) -> list[dict[str, Any]]:
        """Add data from the stream; return the frames that are complete now."""
        frames: list[dict[str, Any]] = []
        self._buffer += data
        while not self.garbled and len(self._buffer) >= self._needed:
            part = bytes(self._buffer[: self._needed])
            del self._buffer[: self._needed]
            try:
                frames += self._next(part)
            except (ValueError, TypeError, KeyError, AttributeError, RecursionError):
                self.garbled = True
                self._buffer.clear()
        return frames

    def _next(self, part: bytes) -> list[dict[str, Any]]:
        """Parse the next part: a length, JSON, or the binary data that belongs to it."""
        if self._size is None:
            self._size = self._needed = FRAME_HEADER.unpack(part)[0]
            if not 0 < self._size <= MAX_FRAME_BYTES:
                raise ValueError
            return []
        if self._frame is None:
            self._frame = parse(part, MAX_ITEMS)
            self._needed = self._binary_size(self._frame["sizes"])
            if self._needed:
                return []
            part = b""
        frame = _with_binary(self._frame, part)
        self._size, self._frame, self._needed = None, None, FRAME_HEADER.size
        return [frame]

    def _binary_size(self, sizes: Any) -> int:
        """Return how many bytes follow, unless they are too many."""
        if type(sizes) is not list or not all(type(size) is int and size >= 0 for size in sizes):
            raise ValueError
        if sizes and (sizes[0] > MAX_RESULT_BYTES or sum(sizes[1:]) > self._max_view_bytes):
            raise ValueError
        return int(sum(sizes))


def _with_binary(frame: dict[str, Any], data: bytes) -> dict[str, Any]:
    """Return a frame with its result as text, and its views with their data."""
    blobs, start = [], 0
    for size in frame.pop("sizes"):
        blobs.append(data[start : start + size])
        start += size
    # Invariant: a result is text or nothing, whatever the JSON says.
    has_result = bool(blobs) and bool(frame["result"])
    frame["result"] = blobs[0].decode("utf-8", "replace") if has_result else None
    # Invariant: without data there are no views, whatever the JSON says.
    views = zip(frame.get("views", ()), blobs[1:], strict=True)
    return {**frame, "views": [{**view, "data": blob} for view, blob in views]}
