"""The file with the answers to many questions: complete lines, exactly once each, even if the writer crashes."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from filelock import FileLock, Timeout

from code_chains.callbacks.redaction import escape_invisible
from code_chains.errors import StoreError
from code_chains.storage.files import atomic_write

_log = logging.getLogger(__name__)


class ResultsFile:
    """A file of JSON lines, one per answered question; a context manager that locks the file.

    A line is on disk before `add` returns. An incomplete last line, left by a crash or a full disk, is removed before
    the next line is written or when the file is opened again, so its question is answered again.

    Args:
        path: The file. `PATH.failed` beside it holds the failures, `PATH.lock` is the lock.
        resume: Whether to continue an existing file; otherwise the file must not exist.

    Attributes:
        done: Ids of the answers in the file.
        unanswered: How many of those that were in the file when it was opened have a failed verdict.

    Raises:
        StoreError: The file exists, is not a results file, or is locked by another process.
    """

    def __init__(self, path: str | Path, *, resume: bool = False) -> None:
        self.path: Path = Path(path)
        self._resume = resume
        self._lock = FileLock(f"{self.path}.lock")
        self._failed: dict[str, dict[str, Any]] = {}
        self.done: set[str] = set()
        self.unanswered: int = 0
        self._end, self._is_torn = 0, False
        """Where the last complete line ends, and whether there may be more."""

    def __enter__(self) -> Self:
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise StoreError(
                f"{self.path} is being written by another process. Wait for it to end."
            ) from None
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            self._open()
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            self._file.close()
        except OSError as failure:  # Of a remote disk. Each answer was on disk before `add` returned.
            _log.warning("%s: %s", self.path, failure)
        finally:
            self._lock.release()

    def _open(self) -> None:
        if self.path.is_dir():
            raise StoreError(
                f"{self.path} is a folder. Name a file in it, e.g. {self.path / 'answers.jsonl'}."
            )
        if self.path.exists() and not self._resume:
            raise StoreError(
                f"{self.path} exists. Resume it (resume=True, or --resume), or choose another file."
            )
        try:
            # Unbuffered: the rest of a line that a buffer could not write would be written when it is closed.
            self._file = self.path.open("ab", buffering=0)
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            self._read_ids()
            self._failed = self._read_failures()
            self._file.truncate(self._end)
        except OSError as error:
            self._file.close()
            raise self._unwritable(error) from error
        except StoreError:
            self._file.close()
            raise

    def _read_ids(self) -> None:
        """Read the ids of the answers, and where the last complete line ends."""
        with self.path.open("rb") as file:
            for number, line in enumerate(file, 1):
                if not line.endswith(b"\n"):
                    return
                try:
                    record = json.loads(line)
                    self.done.add(str(record["id"]))
                    self.unanswered += (record.get("verdict") or {}).get("status") == "failed"
                except (ValueError, KeyError, TypeError) as error:
                    raise StoreError(
                        f"{self.path}, line {number}, is not an answer of a run. Choose another file; or if it is a"
                        " damaged answer, delete the line, and its question is asked again."
                    ) from error
                self._end += len(line)

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the answers in the file, in the order in which they were written."""
        with self.path.open(encoding="utf-8") as file:
            yield from map(json.loads, file)

    @property
    def failures(self) -> dict[str, dict[str, Any]]:
        """Questions that failed in this run or an earlier one, by id."""
        return dict(self._failed)

    def _read_failures(self) -> dict[str, dict[str, Any]]:
        """Return the failures of earlier runs; none if their file is missing or damaged."""
        try:
            lines = Path(f"{self.path}.failed").read_text(encoding="utf-8").splitlines()
            return {str(record["id"]): record for record in map(json.loads, lines)}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def add(self, record: Mapping[str, Any]) -> None:
        """Append an answer, identified by its `id`. An answer that is already in the file is ignored.

        Raises:
            StoreError: The answer cannot be written, e.g. because the disk is full. The file is unchanged.
        """
        if record["id"] in self.done:
            return
        line = _serialize(record).encode() + b"\n"
        try:
            if self._is_torn:
                self._cut_off()
            self._is_torn = True
            self._write(line)
            os.fsync(self._file.fileno())
        except OSError as error:
            with contextlib.suppress(
                OSError
            ):  # If not now, then before the next line, or when it is resumed.
                self._cut_off()
            raise self._unwritable(error) from error
        self._is_torn = False
        self._end += len(line)
        self.done.add(record["id"])
        self._failed.pop(record["id"], None)

    def _write(self, line: bytes) -> None:
        while line:
            line = line[self._file.write(line) :]

    def _cut_off(self) -> None:
        """Remove what was written of a line that is incomplete."""
        os.ftruncate(self._file.fileno(), self._end)
        self._is_torn = False

    def _unwritable(self, error: OSError) -> StoreError:
        kept = " Its answers are complete; when it can be written, resume it (resume=True, or --resume)."
        return StoreError(
            f"{self.path} cannot be written: {error}.{kept if self.done else ''}", is_retryable=True
        )

    def fail(self, record: Mapping[str, Any]) -> None:
        """Record a failure, identified by its `id`. `write_failures` writes it."""
        self._failed[record["id"]] = dict(record)

    def write_failures(self) -> None:
        """Write the failures to their file, or delete it if there are none.

        Raises:
            StoreError: They cannot be written. The file is unchanged.
        """
        failed_path = Path(f"{self.path}.failed")
        lines = [_serialize(record) for record in self._failed.values()]
        try:
            if lines:
                atomic_write(failed_path, "".join(f"{line}\n" for line in lines).encode())
            else:
                failed_path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"{failed_path} cannot be written: {error}.", is_retryable=True) from error


def _serialize(record: Mapping[str, Any]) -> str:
    return escape_invisible(json.dumps(record, ensure_ascii=False))
