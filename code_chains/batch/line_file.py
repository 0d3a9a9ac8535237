"""A file of lines, each of which is complete and on the disk, or not in it."""

from __future__ import annotations

import contextlib
import os
import tempfile
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from code_chains.storage.files import replace_by
from code_chains.storage.foreign import lines_of, open_file

_FLAGS = getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)


class LineFile:
    """An open file that lines are appended to. What a crash or a full disk left of a line is cut off.

    Args:
        path: The file; it is made if there is none.

    Attributes:
        end: Where the last complete line ends.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _FLAGS, 0o666)
        self._file: BinaryIO = open(descriptor, "r+b", buffering=0)  # noqa: SIM115 - `close` closes it
        self.end: int = 0
        self._is_torn = False
        """Whether there may be more behind the last complete line."""

    def read(self) -> Iterator[tuple[int, bytes]]:
        """Yield the complete lines, with where each begins, and find their end."""
        self._file.seek(0)
        with open(self._file.fileno(), "rb", closefd=False) as file:
            for start, line in lines_of(file):
                if not line.endswith(b"\n"):
                    return
                self.end = file.tell()
                yield start, line

    def append(self, line: bytes) -> int:
        """Append a line, and return where it begins.

        Raises:
            OSError: It cannot be written. What was written of it is cut off now, or before the next line.
        """
        try:
            if self._is_torn:
                self.cut_off()
            self._is_torn = True
            self.write_at(self.end, line)
        except OSError:
            with contextlib.suppress(OSError):
                self.cut_off()
            raise
        self._is_torn = False
        start, self.end = self.end, self.end + len(line)
        return start

    def write_at(self, start: int, data: bytes) -> None:
        """Write bytes at a place, so that they are on the disk."""
        self._file.seek(start)
        while data:
            data = data[self._file.write(data) :]
        os.fsync(self._file.fileno())

    def cut_off(self) -> None:
        """Remove what is behind the last complete line."""
        os.ftruncate(self._file.fileno(), self.end)
        self._is_torn = False

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    def keep(self, places: Iterable[tuple[int, int]]) -> None:
        """Write the closed file anew, with the first line and with those that begin at these places and are so long."""
        with open_file(self._path) as file, tempfile.TemporaryFile(dir=self._path.absolute().parent) as copy:
            copy.write(file.readline())
            for start, length in sorted(places):
                file.seek(start)
                copy.write(file.read(length))
            copy.seek(0)
            replace_by(self._path, copy)
