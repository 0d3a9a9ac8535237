"""A file of lines with one writer, each of which is complete and on the disk, or not in it."""

from __future__ import annotations

import contextlib
import errno
import logging
import os
import sys
import tempfile
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

from filelock import SoftFileLock, Timeout

from code_chains.storage.files import replace_by
from code_chains.storage.foreign import lines_of, open_file

if sys.platform == "win32":
    import msvcrt
else:
    import fcntl

_log = logging.getLogger(__name__)
_TAKEN = (errno.EAGAIN, errno.EACCES, errno.EDEADLK)
_COPIED_BYTES = 1 << 20
_PLACE_OF_LOCK = 1 << 62
"""Behind whatever a file has, so that a lock of Windows keeps nobody from reading it."""
_FLAGS = getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)


class WrittenError(Exception):
    """Another process writes the file."""


class DisplacedError(Exception):
    """The file that is open is no longer the one that its path names, or somebody has cut it; the text says which."""


class LineFile:
    """An open file that lines are appended to. What a crash or a full disk left of a line is cut off.

    Invariant: the lock is on the file itself, so that it has one writer under all of its names.

    Args:
        path: The file; it is made if there is none.

    Attributes:
        end: Where the last complete line ends.
        keeps_name: Whether lines are only appended while the path names the file.

    Raises:
        WrittenError: Another process writes it.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._substitute: SoftFileLock | None = None
        self.keeps_name: bool = True
        while True:
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | _FLAGS, 0o666)
            self._file: BinaryIO = open(descriptor, "r+b", buffering=0)  # noqa: SIM115 - `close` closes it
            try:
                self._lock()
                self._check_name()
                break
            except DisplacedError:  # Its writer has replaced it in between.
                self.close()
            except BaseException:
                self._file.close()
                raise
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
            DisplacedError: The file is not where it was, or was cut. Nothing is written.
            OSError: It cannot be written. What was written of it is cut off now, or before the next line.
        """
        if self.keeps_name:
            self._check_name()
        if not self._is_torn:
            self._find_end()
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

    def _lock(self) -> None:
        try:
            if sys.platform == "win32":
                os.lseek(self._file.fileno(), _PLACE_OF_LOCK, os.SEEK_SET)
                msvcrt.locking(self._file.fileno(), msvcrt.LK_NBLCK, 1)
            else:
                fcntl.flock(self._file.fileno(), fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError as error:
            if error.errno in _TAKEN:
                raise WrittenError from error
            self._substitute = SoftFileLock(f"{self._path}.lock")
            _log.warning(
                "The file system of %s has no locks: %s.lock keeps others away.", self._path, self._path
            )
            try:
                self._substitute.acquire(timeout=0)
            except Timeout:
                raise WrittenError from error

    def _check_name(self) -> None:
        """Raise a DisplacedError unless the path names the open file."""
        try:
            if os.path.samestat(os.fstat(self._file.fileno()), os.stat(self._path)):
                return
        except FileNotFoundError:
            raise DisplacedError("was moved or removed") from None
        raise DisplacedError("was replaced")

    def _find_end(self) -> None:
        """Go on behind what somebody has appended; raise a DisplacedError if lines are missing."""
        size = os.fstat(self._file.fileno()).st_size
        if size < self.end:
            raise DisplacedError("was cut")
        if size > self.end:
            self._file.seek(size - 1)
            if self._file.read(1) != b"\n":
                self.write_at(size, b"\n")
                size += 1
            self.end = size

    def copied_to(self, path: Path) -> LineFile:
        """Return another file with the complete lines of this one, which is closed.

        Raises:
            OSError: It cannot be made. This one stays open.
        """
        other = LineFile(path)
        try:
            self._file.seek(0)
            left = self.end
            while left > 0 and (data := self._file.read(min(left, _COPIED_BYTES))):
                other.write_at(other.end, data)
                other.end, left = other.end + len(data), left - len(data)
            other.end = 0
            deque(other.read(), maxlen=0)  # It may have been cut within a line.
            other.cut_off()
        except OSError:
            other.close()
            raise
        self.close()
        return other

    def close(self) -> None:
        """Close the file, and release its lock."""
        if sys.platform != "win32" and self._substitute is None and not self._file.closed:
            fcntl.flock(self._file.fileno(), fcntl.LOCK_UN)  # A forked process may have it open, too.
        self._file.close()
        if self._substitute is not None:
            self._substitute.release()

    def keep(self, places: Iterable[tuple[int, int]]) -> None:
        """Write the closed file anew, with the first line and with those that begin at these places and are so long."""
        with open_file(self._path) as file, tempfile.TemporaryFile(dir=self._path.absolute().parent) as copy:
            copy.write(file.readline())
            for start, length in sorted(places):
                file.seek(start)
                copy.write(file.read(length))
            copy.seek(0)
            replace_by(self._path, copy)
