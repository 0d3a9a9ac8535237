"""A file to describe: what was read of it."""

from __future__ import annotations

import gzip
import os
from dataclasses import dataclass
from typing import BinaryIO

MAX_BYTES = 32 << 20
"""How much of a file is read."""
MAX_COUNTED_BYTES = 512 << 20
CHUNK_BYTES = 1 << 20


@dataclass
class Source:
    """A file in the working directory.

    Attributes:
        name: Its name.
        data: Its bytes, uncompressed; only the first ones if it is long.
        size: Its size on disk.
        is_compressed: Whether it is compressed with gzip.
        is_complete: Whether `data` is all of it.
    """

    name: str
    data: bytes
    size: int
    is_compressed: bool = False
    is_complete: bool = True

    @property
    def suffix(self) -> str:
        """Its suffix in lower case, without that of the compression."""
        name = self.name.lower()
        if self.is_compressed:
            name = name.removesuffix(".gz")
        return os.path.splitext(name)[1]

    def count_lines(self) -> int:
        """Return the number of lines; of a very long file an estimate."""
        lines = counted = 0
        with self.open() as file:
            while counted < MAX_COUNTED_BYTES and (chunk := file.read(CHUNK_BYTES)):
                lines += chunk.count(b"\n")
                counted += len(chunk)
        if not self.is_compressed and counted < self.size:
            return lines * self.size // counted
        return lines

    def open(self) -> BinaryIO | gzip.GzipFile:
        """Open it for reading, uncompressed."""
        return gzip.open(self.name, "rb") if self.is_compressed else open(self.name, "rb")


def load(name: str) -> Source:
    """Read the beginning of a file; all of it up to a limit."""
    with open(name, "rb") as file:
        is_compressed = file.read(2) == b"\x1f\x8b"
    source = Source(name, b"", os.path.getsize(name), is_compressed)
    with source.open() as file:
        source.data = file.read(MAX_BYTES)
        source.is_complete = not file.read(1)
    return source
