"""A file to describe: what was read of it."""

from __future__ import annotations

import importlib
import os
from dataclasses import dataclass
from typing import IO, Any

from .columns import literal

MAX_BYTES = 32 << 20
"""How much of a file is read."""
MAX_COUNTED_BYTES = 512 << 20
CHUNK_BYTES = 1 << 20
COMPRESSIONS = (
    (b"\x1f\x8b", "gzip", ".gz"),
    (b"BZh", "bz2", ".bz2"),
    (b"\xfd7zXZ\x00", "lzma", ".xz"),
    (b"\x28\xb5\x2f\xfd", "zstandard", ".zst"),
)
"""How a compressed file begins, the module that opens it, and its suffix."""
PANDAS_NAMES = {"lzma": "xz", "zstandard": "zstd"}


@dataclass
class Source:
    """A file in the working directory.

    Attributes:
        name: Its name.
        data: Its bytes, uncompressed; only the first ones if it is long.
        size: Its size on disk.
        compression: The module that opens it; empty if it is not compressed.
        is_complete: Whether `data` is all of it.
    """

    name: str
    data: bytes
    size: int
    compression: str = ""
    is_complete: bool = True

    @property
    def suffix(self) -> str:
        """Its suffix in lower case, without that of the compression."""
        return os.path.splitext(self.name.lower().removesuffix(self._compressed_suffix))[1]

    @property
    def pandas_compression(self) -> str:
        """The argument by which pandas reads it; empty if the name tells."""
        if not self.compression or self.name.lower().endswith(self._compressed_suffix):
            return ""
        return PANDAS_NAMES.get(self.compression, self.compression)

    @property
    def _compressed_suffix(self) -> str:
        return next((suffix for _, module, suffix in COMPRESSIONS if module == self.compression), "")

    def opening(self, encoding: str, errors: str = "strict", *, keeps_lines: bool = False) -> str:
        """Return the expression that opens it as text; the ends of lines are kept if that is asked for."""
        arguments = [literal(self.name), *(['"rt"'] if self.compression else []), f'encoding="{encoding}"']
        if errors != "strict":
            arguments.append(f'errors="{errors}"')
        if keeps_lines:
            arguments.append('newline=""')
        return f"{self.compression + '.' if self.compression else ''}open({', '.join(arguments)})"

    def count_lines(self) -> int:
        """Return the number of lines; of a very long file an estimate."""
        lines = counted = 0
        with self.open() as file:
            while counted < MAX_COUNTED_BYTES and (chunk := file.read(CHUNK_BYTES)):
                lines += chunk.count(b"\n")
                counted += len(chunk)
        if not self.compression and counted < self.size:
            return lines * self.size // counted
        return lines

    def open(self) -> IO[bytes]:
        """Open it for reading, uncompressed."""
        module: Any = importlib.import_module(self.compression or "builtins")
        opened: IO[bytes] = module.open(self.name, "rb")
        return opened


def load(name: str) -> Source:
    """Read the beginning of a file; all of it up to a limit.

    Raises:
        ImportError: It is compressed, and the module that opens it is not installed.
    """
    with open(name, "rb") as file:
        head = file.read(8)
    compression = next((module for magic, module, _ in COMPRESSIONS if head.startswith(magic)), "")
    source = Source(name, b"", os.path.getsize(name), compression)
    with source.open() as file:
        source.data = file.read(MAX_BYTES)
        source.is_complete = not file.read(1)
    return source
