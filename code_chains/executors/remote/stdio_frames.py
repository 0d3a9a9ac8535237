"""Messages between an application and the kernel sandbox elsewhere, over standard streams: JSON, then data of any kind.

Each frame begins with the request that it belongs to, a length of its JSON, and one of its data. What takes room, such as
files and texts, is data: nobody has to encode or parse it. Invariant: what cannot be read ends the request that it belongs
to, and no other, as programs have a say in it.
"""

from __future__ import annotations

import json
import queue
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any, BinaryIO

from code_chains.executors.sandbox.tables import read_value, write_value

Json = dict[str, Any]
HEADER = struct.Struct("!QIQ")
MAX_QUEUED, MAX_QUEUED_BYTES = 10_000, 256 << 20
"""Messages that wait to be written, and what they hold besides uploads: whoever leaves more unread is gone."""


PIECE_BYTES = 1 << 20
"""Bytes that are read or written at once, each a sign of life of the other side."""


class Blobs(list[bytes]):
    """The data of a frame; its JSON names them by their numbers."""

    def add(self, data: bytes) -> int:
        """Add data, and return its number."""
        self.append(data)
        return len(self) - 1

    def add_text(self, text: str) -> int:
        """Add a text, without half characters, which nothing can print; return its number."""
        return self.add(text.encode(errors="replace"))

    def text(self, number: int, most: int) -> str:
        """Return the text that has a number, of which some more than `most` characters are read.

        Raises:
            ValueError: There is no such number.
        """
        if type(number) is not int or number < 0:
            raise ValueError(f"{number!r} is no number of a text")
        return self[number][: 4 * most + 4].decode(errors="replace")


def frame(message: Json, blobs: Sequence[bytes] = ()) -> list[bytes]:
    """Return a message for the stream, in parts."""
    data = json.dumps({**message, "sizes": list(map(len, blobs))}).encode()
    return [HEADER.pack(message.get("id", 0), len(data), sum(map(len, blobs))) + data, *blobs]


def divide(message: Mapping[str, Any], data: bytes) -> Blobs:
    """Return the data of a frame one by one.

    Raises:
        ValueError: Their sizes are not as the message says.
    """
    sizes, blobs, start = message.get("sizes"), Blobs(), 0
    if not isinstance(sizes, list) or not all(type(size) is int and size >= 0 for size in sizes):
        raise ValueError("no sizes")
    if sum(sizes) != len(data):
        raise ValueError("other sizes than it says")
    for size in sizes:
        blobs.append(data[start : start + size])
        start += size
    return blobs


class Writer:
    """Writes messages one after the other in a thread of its own, so that no sender waits.

    Invariant: no lock is held while it writes, and nothing that reads waits for it.

    Args:
        stream: Where frames go.
        fail: Called once with a reason if the other side takes no more.

    Attributes:
        written_at: Monotonic time at which the other side last took something.
    """

    def __init__(self, stream: BinaryIO | Any, fail: Callable[[str], object]) -> None:
        self._stream, self._fail = stream, fail
        self._queue: queue.SimpleQueue[tuple[Json, Sequence[bytes], Callable[[], object]] | None] = (
            queue.SimpleQueue()
        )
        self._lock, self._bytes = threading.Lock(), 0
        self.written_at: float = time.monotonic()
        self._thread = threading.Thread(target=self._write, daemon=True, name="code-chains-writer")
        self._thread.start()

    def put(
        self, message: Json, blobs: Sequence[bytes] = (), written: Callable[[], object] | None = None
    ) -> None:
        """Let a message be written, after those before it.

        Args:
            message: The message.
            blobs: Its data.
            written: Called afterwards, by whoever limits the room that such messages take; None for `MAX_QUEUED_BYTES`.
        """
        if written is None:
            size = sum(map(len, blobs))
            self._count(size)
            written = partial(self._count, -size)
        if self._queue.qsize() > MAX_QUEUED or self._bytes > MAX_QUEUED_BYTES:
            self._fail("it reads nothing")
        else:
            self._queue.put((message, blobs, written))

    def _count(self, size: int) -> None:
        with self._lock:
            self._bytes += size

    def end(self, seconds: float) -> None:
        """Close the stream after what was put, at most after some seconds."""
        self._queue.put(None)
        self._thread.join(seconds)

    def _write(self) -> None:
        try:
            while (item := self._queue.get()) is not None:
                message, blobs, written = item
                try:
                    for part in frame(message, blobs):
                        for start in range(0, len(part), PIECE_BYTES):
                            self._stream.write(part[start : start + PIECE_BYTES])
                            self._stream.flush()
                            self.written_at = time.monotonic()
                finally:
                    written()
        except (OSError, ValueError) as error:
            self._fail(f"nothing can be written to it ({error})")
        finally:
            with suppress(OSError, ValueError):
                self._stream.close()


def pack_values(values: Mapping[str, Any] | None, blobs: Blobs) -> Json:
    """Return variables, or the result of a tool, with their exact types.

    Raises:
        InputError: One cannot be passed.
    """
    packed = {}
    for name, value in (values or {}).items():
        kind, label, data = write_value(name, value)
        packed[name] = {"kind": kind, "label": label, "blob": blobs.add(data)}
    return packed


def unpack_values(packed: Json, blobs: Blobs) -> dict[str, Any]:
    """Return the values that `pack_values` packed."""
    return dict(_unpacked(packed, blobs))


def _unpacked(packed: Json, blobs: Blobs) -> Iterator[tuple[str, Any]]:
    for name, value in packed.items():
        yield name, read_value(value["kind"], value["label"], blobs[value["blob"]])
