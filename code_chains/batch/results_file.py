"""The file with the answers to many questions: complete lines, exactly once each, even if the writer crashes."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from filelock import FileLock, Timeout

from code_chains.callbacks.redaction import escape_invisible
from code_chains.errors import StoreError
from code_chains.storage.files import atomic_write

__all__ = ["ResultsFile"]


class ResultsFile:
    """A file of JSON lines, one per answered question; a context manager that locks the file.

    A line is on disk before `add` returns. An incomplete last line, left by a crash, is removed when the file
    is opened again, so its question is answered again.

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

    def __enter__(self) -> Self:
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise StoreError(
                f"{self.path} is being written by another process. Wait for it to end."
            ) from None
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written: {error}") from error
        try:
            self._open()
        except BaseException:
            self._lock.release()
            raise
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._file.close()
        self._lock.release()

    def _open(self) -> None:
        if self.path.exists() and not self._resume:
            raise StoreError(
                f"{self.path} exists. Resume it (resume=True, or --resume), or choose another file."
            )
        try:
            self._file = self.path.open("a+b")
            self.done = self._read_ids()
            self._failed = self._read_failures()
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written: {error}") from error

    def _read_ids(self) -> set[str]:
        """Return the ids of the answers, after truncating an incomplete last line."""
        done: set[str] = set()
        self._file.seek(0)
        end = 0
        for number, line in enumerate(self._file, 1):
            if not line.endswith(b"\n"):
                self._file.truncate(end)
                break
            end += len(line)
            try:
                record = json.loads(line)
                done.add(str(record["id"]))
                self.unanswered += (record.get("verdict") or {}).get("status") == "failed"
            except (ValueError, KeyError, TypeError) as error:
                self._file.close()
                raise StoreError(
                    f"{self.path}, line {number}, is not an answer of a run. Choose another file."
                ) from error
        return done

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
        end = os.fstat(self._file.fileno()).st_size
        try:
            self._file.write(line)
            self._file.flush()
            os.fsync(self._file.fileno())
        except OSError as error:
            os.ftruncate(self._file.fileno(), end)
            raise StoreError(f"{self.path} cannot be written: {error}", is_retryable=True) from error
        self.done.add(record["id"])
        self._failed.pop(record["id"], None)

    def fail(self, record: Mapping[str, Any]) -> None:
        """Record a failure, identified by its `id`. `write_failures` writes it."""
        self._failed[record["id"]] = dict(record)

    def write_failures(self) -> None:
        """Write the failures to their file, or delete it if there are none."""
        failed_path = Path(f"{self.path}.failed")
        if self._failed:
            lines = [_serialize(record) for record in self._failed.values()]
            atomic_write(failed_path, "".join(f"{line}\n" for line in lines).encode())
        else:
            failed_path.unlink(missing_ok=True)


def _serialize(record: Mapping[str, Any]) -> str:
    return escape_invisible(json.dumps(record, ensure_ascii=False))
