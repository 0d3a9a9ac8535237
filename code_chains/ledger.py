"""Answers to many questions in one file: each whole and once, whatever happens to whoever writes it."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from filelock import FileLock, Timeout

from code_chains.errors import StoreError
from code_chains.files import keep

__all__ = ["Ledger"]


class Ledger:
    """A file of JSON lines, one for each question that is done; a context manager that holds the file for itself.

    A line is on the disk before `add` returns. A last line that was cut short, because the machine stopped, is taken away
    when the file is opened again; whatever it was about is done once more.

    Args:
        path: The file. Beside it lies `PATH.failed`, with what could not be answered, and `PATH.lock`.
        resume: Whether it may go on where it is; otherwise there must be no such file yet.

    Raises:
        StoreError: The file is there already, is none of ours, or somebody else is writing it.
    """

    def __init__(self, path: str | Path, *, resume: bool = False) -> None:
        self.path = Path(path)
        self._resume = resume
        self._lock = FileLock(f"{self.path}.lock")
        self._failed: dict[str, dict[str, Any]] = {}
        self.done: set[str] = set()

    def __enter__(self) -> Self:
        try:
            self._lock.acquire(timeout=0)
        except Timeout:
            raise StoreError(f"{self.path} is being written by somebody else. Wait for them to end.") from None
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
            raise StoreError(f"{self.path} is there already. Go on with it (--resume), or name another file.")
        try:
            self._file = self.path.open("a+b")
            self.done = self._read()
            self._failed = self._read_failures()
        except OSError as error:
            raise StoreError(f"{self.path} cannot be written: {error}") from error

    def _read(self) -> set[str]:
        """Ids of what is done, after taking away a last line that was cut short."""
        done: set[str] = set()
        self._file.seek(0)
        end = 0
        for number, line in enumerate(self._file, 1):
            if not line.endswith(b"\n"):
                self._file.truncate(end)
                break
            end += len(line)
            try:
                done.add(str(json.loads(line)["id"]))
            except (ValueError, KeyError, TypeError) as error:
                self._file.close()
                raise StoreError(f"{self.path}, line {number}, is no answer of a run: name another file.") from error
        return done

    @property
    def failures(self) -> dict[str, dict[str, Any]]:
        """What could not be answered so far, by id, in this run or an earlier one."""
        return dict(self._failed)

    def _read_failures(self) -> dict[str, dict[str, Any]]:
        """Those of earlier runs; none where that file is missing or damaged."""
        try:
            lines = Path(f"{self.path}.failed").read_text(encoding="utf-8").splitlines()
            return {str(record["id"]): record for record in map(json.loads, lines)}
        except (OSError, ValueError, KeyError, TypeError):
            return {}

    def add(self, record: Mapping[str, Any]) -> None:
        """Write an answer, which has an `id`. Once is enough: one that is there already is left out.

        Raises:
            StoreError: The disk is full, say; nothing of it is left in the file.
        """
        if record["id"] in self.done:
            return
        line = json.dumps(record, ensure_ascii=False).encode() + b"\n"
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
        """Note what could not be answered, which has an `id`."""
        self._failed[record["id"]] = dict(record)

    def settle(self) -> None:
        """Write down what could not be answered; where all was, no such file is left."""
        beside = Path(f"{self.path}.failed")
        if self._failed:
            lines = [json.dumps(record, ensure_ascii=False) for record in self._failed.values()]
            keep(beside, "".join(f"{line}\n" for line in lines).encode())
        else:
            beside.unlink(missing_ok=True)
