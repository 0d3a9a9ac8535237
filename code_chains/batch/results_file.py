"""The file with the answers to many questions: complete lines, exactly once each, even if the writer crashes."""

from __future__ import annotations

import contextlib
import json
import logging
import os
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from operator import itemgetter
from pathlib import Path
from types import TracebackType
from typing import Any, Self

from code_chains.batch.line_file import DisplacedError, LineFile, WrittenError
from code_chains.batch.questions import Question
from code_chains.batch.records import Answer
from code_chains.batch.stored_artifacts import folder_of, store_artifacts, with_artifacts
from code_chains.errors import InputError, StoreError, brief
from code_chains.records.filenames import file_stem, numbered_names
from code_chains.records.printable import escape_invisible
from code_chains.storage.files import atomic_write
from code_chains.storage.foreign import is_child, open_file, parse_json, read_lines, remove_child

_log = logging.getLogger(__name__)
FORMAT = 1
_HEAD = "code_chains_results"
_HEAD_BYTES = f'{{"{_HEAD}"'.encode()
_ANEW = "Ask all questions anew (anew=True, or --anew, which keeps the file under another name), or choose another file."
_OTHER_FILE = "Choose another file."


@dataclass(frozen=True)
class _Line:
    """Where an answer is in the file.

    Attributes:
        start: Its first byte.
        length: Its bytes, with the end of the line.
        digest: The checksum of its question; empty if that has none.
        is_unanswered: Whether its verdict is `failed`.
        has_met_limit: Whether that is so as its program met a limit, which may be the fault of a busy machine.
        folder: The folder of its artifacts; empty if it has none.
    """

    start: int
    length: int
    digest: str
    is_unanswered: bool
    has_met_limit: bool
    folder: str

    @classmethod
    def of(cls, record: Mapping[str, Any], start: int, length: int) -> _Line:
        """Return where a record is."""
        computed = record["computed"]
        is_unanswered = (computed.get("verdict") or {}).get("status") == "failed"
        ended = str((computed.get("execution") or {}).get("status", "ok"))
        has_met_limit = is_unanswered and ended not in ("ok", "error", "refused")
        digest = str(record["given"]["digest"])
        return cls(start, length, digest, is_unanswered, has_met_limit, folder_of(record))

    def has_lost_files(self, folder: Path) -> bool:
        """Return whether its artifacts are no longer in the folder of all."""
        return bool(self.folder) and not is_child(folder, self.folder)


class ResultsFile:
    """A file of JSON lines, one per answered question; a context manager that locks the file.

    Its first line says what answers: model, options, version. In each other line `given` is what the user brought, and
    `computed` what came of it. A line is on disk before `add` returns; artifacts are files in the folder `PATH.files`. An
    incomplete last line, left by a crash or a full disk, is removed before the next line is written or when the file is
    opened again, and a damaged one is skipped, so that their questions are answered again. A file that is not of this
    kind is never written to.

    Args:
        path: The file. `PATH.failed` beside it holds the failures.
        resume: Whether to continue an existing file; otherwise the file must not exist.
        anew: Whether an existing file is kept under another name, and all questions are asked.

    Attributes:
        damaged: Numbers of the lines that could not be read.
        is_bound: Whether `bind` has said what answers.

    Raises:
        StoreError: The file exists, is not a results file, or is locked by another process.
    """

    def __init__(self, path: str | Path, *, resume: bool = False, anew: bool = False) -> None:
        self.path: Path = Path(path)
        self._resume, self._anew = resume, anew
        self._displaced = ""
        self._failed: dict[str, dict[str, Any]] = {}
        self._lines: dict[str, _Line] = {}
        self.damaged: list[int] = []
        self._run: dict[str, Any] | None = None
        self.is_bound: bool = False
        self._has_gaps = False

    @property
    def done(self) -> set[str]:
        """Ids of the answers in the file."""
        return set(self._lines)

    @property
    def without_files(self) -> set[str]:
        """Ids of the answers whose artifacts are gone."""
        return {key for key, line in self._lines.items() if line.has_lost_files(self.artifacts_folder)}

    @property
    def artifacts_folder(self) -> Path:
        """The folder with the artifacts of answers."""
        return Path(f"{self.path}.files")

    def __enter__(self) -> Self:
        parent = self.path.absolute().parent
        if not parent.is_dir() or not os.access(parent, os.W_OK):
            raise StoreError(
                f"{self.path} cannot be written: its folder is missing or read-only. {_OTHER_FILE}"
            )
        if self.path.is_file() and self.path.stat().st_size:
            self._check_kind()  # Nothing is put beside a file that is not ours.
        try:
            self._open()
        except WrittenError:
            raise StoreError(
                f"{self.path} is being written by another process. Wait for it to end."
            ) from None
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        try:
            if self._has_gaps and not self._displaced:
                self._file.keep((line.start, line.length) for line in self._lines.values())
        except (OSError, DisplacedError) as failure:
            # Such as of a remote disk. Each answer was on disk before `add` returned.
            _log.warning("%s: %s", self.path, failure)
        finally:
            self._file.close()
        if self._displaced and kind is None:
            raise StoreError(self._displaced)

    # -- opening ---------------------------------------------------------------------------------------------

    def _open(self) -> None:
        if self.path.is_dir():
            raise StoreError(
                f"{self.path} is a folder. Name a file in it, e.g. {self.path / 'answers.jsonl'}."
            )
        if os.path.lexists(self.path) and not self.path.is_file():
            raise StoreError(f"{self.path} is no regular file, or a link to none. {_OTHER_FILE}")
        try:
            has_content = self.path.exists() and self.path.stat().st_size > 0
            if has_content and not (self._resume or self._anew):
                raise StoreError(
                    f"{self.path} exists. Resume it (resume=True, or --resume), or choose another file."
                )
            if has_content:
                self._check_kind()
            self._file: LineFile = LineFile(self.path)
            if has_content and self._anew:
                with contextlib.closing(self._file):  # Nobody writes it while it is renamed.
                    self._keep()
                self._file = LineFile(self.path)
        except OSError as error:
            raise self._unwritable(error) from error
        try:
            self._read_lines()
            self._file.cut_off()
            self._read_failures()
        except OSError as error:
            self._file.close()
            raise self._unwritable(error) from error
        except StoreError:
            self._file.close()
            raise

    def _check_kind(self) -> None:
        """Raise unless the file begins as one of ours does: another one is not touched."""
        with open_file(self.path) as file:
            head = file.readline(1 << 20)
        if not head.endswith(b"\n") and (head.startswith(_HEAD_BYTES) or _HEAD_BYTES.startswith(head)):
            return  # A crash cut its first line off: there is nothing in it.
        try:
            parsed = parse_json(head) if head.startswith(_HEAD_BYTES) else {}
            self._run, number = parsed["run"], parsed[_HEAD]
        except (ValueError, KeyError, TypeError):
            number = None
        if not isinstance(self._run, dict) or not isinstance(number, int):
            raise StoreError(f"{self.path} is no results file, so it is left as it is. {_OTHER_FILE}")
        if number > FORMAT:
            raise StoreError(
                f"{self.path} was written by a newer version of code_chains. Update it, or choose another file."
            )

    def _keep(self) -> None:
        """Give an existing file and what belongs to it other names."""
        names = numbered_names(f"{self.path.name}.old")
        kept = next(path for path in map(self.path.with_name, names) if not os.path.lexists(path))
        os.rename(self.path, kept)
        for suffix in (".failed", ".files"):
            with contextlib.suppress(FileNotFoundError):
                os.rename(f"{self.path}{suffix}", f"{kept}{suffix}")
        self._run = None

    def _read_lines(self) -> None:
        """Read where the answers are."""
        for number, (start, line) in enumerate(self._file.read(), 1):
            self._has_gaps |= not line.strip()
            if number > 1 and line.strip():
                self._read_line(number, start, line)

    def _read_line(self, number: int, start: int, line: bytes) -> None:
        try:
            record = read_record(line)
            self._lines[str(record["id"])] = _Line.of(record, start, len(line))
        except ValueError:
            self.damaged.append(number)
            self._has_gaps = True

    def _read_failures(self) -> None:
        """Read the failures of earlier runs; those that are answered by now are none."""
        with contextlib.suppress(InputError):
            records = map(itemgetter(0), read_failures(self.path))
            failed = {str(record["id"]): record for record in records}
            self._failed = {key: record for key, record in failed.items() if key not in self._lines}

    # -- what is in it ---------------------------------------------------------------------------------------

    def bind(self, run: Mapping[str, Any]) -> None:
        """Say what answers: a file with answers of something else is refused.

        Args:
            run: Model, options, version and the like, as JSON values.

        Raises:
            StoreError: The answers in the file are of another run, or it cannot be written.
        """
        self.is_bound, run = True, json.loads(json.dumps(run))
        if self._run is None:
            self._write_head(run)
        elif self._run != run and self._lines:
            said = "; ".join(_differences(self._run, run))
            raise StoreError(f"{self.path} has the answers of another run ({said}). {_ANEW}")
        elif self._run != run:
            self._file.end = 0
            self._file.cut_off()
            self._write_head(run)

    def _write_head(self, run: Mapping[str, Any]) -> None:
        self._append({_HEAD: FORMAT, "run": run})
        self._run = dict(run)

    def has(self, question: Question) -> bool:
        """Return whether the answer to a question is in the file, and the question is what it was."""
        line = self._lines.get(question.id)
        return line is not None and not self.is_changed(question)

    def is_changed(self, question: Question) -> bool:
        """Return whether the file has an answer of this id to another question, or with other files."""
        line = self._lines.get(question.id)
        return (
            line is not None and "" not in (line.digest, question.digest) and line.digest != question.digest
        )

    def is_unanswered(self, question: Question) -> bool:
        """Return whether the file has the answer to a question, and it has a failed verdict."""
        return self.has(question) and self._lines[question.id].is_unanswered

    def records(self) -> Iterator[dict[str, Any]]:
        """Yield the answers in the file, in the order in which they were written."""
        yield from map(itemgetter(0), read_records(self.path))

    def answer_to(self, question: Question, record: Mapping[str, Any]) -> Answer:
        """Return the answer that a record of the file holds, with its artifacts.

        Raises:
            StoreError: The record is no answer: it was written or changed outside of this store.
        """
        try:
            return Answer.from_computed(question, with_artifacts(record["computed"], self.artifacts_folder))
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise StoreError(
                f"The answer {brief(record['id'])} in {self.path} is damaged ({brief(error)}). Remove its line."
            ) from error

    @property
    def failures(self) -> dict[str, dict[str, Any]]:
        """Questions that failed in this run or an earlier one, by id."""
        return dict(self._failed)

    @property
    def abandoned(self) -> set[str]:
        """Ids of questions that were abandoned, as their workers died."""
        return {key for key, record in self._failed.items() if record["computed"].get("is_lost")}

    # -- writing ---------------------------------------------------------------------------------------------

    def add(self, record: Mapping[str, Any]) -> None:
        """Append an answer, as `Answer.to_dict` returns it, in place of one to another question with its id.

        Raises:
            StoreError: The answer cannot be written, e.g. because the disk is full. No answer that was complete is lost.
        """
        key, earlier = str(record["id"]), self._lines.get(str(record["id"]))
        if earlier is not None and earlier.digest == record["given"]["digest"]:
            return
        if self._run is None:
            self._write_head({})
        if self._failed.pop(key, None) is not None and Path(f"{self.path}.failed").exists():
            self.write_failures()  # Invariant: nobody ever finds a question in both files.
        try:
            computed = store_artifacts(
                record["computed"],
                self.artifacts_folder,
                f"{file_stem(key)[:60]}-{record['given']['digest'][:8] or 'x'}",
            )
        except OSError as error:
            raise self._unwritable(error) from error
        if earlier is not None:
            self._blank(key, earlier)
        line = {**record, "computed": computed}
        start = self._append(line)
        self._lines[key] = _Line.of(line, start, self._file.end - start)

    def _append(self, record: Mapping[str, Any]) -> int:
        """Append a line, and return where it begins."""
        line = _serialize(record).encode() + b"\n"
        try:
            try:
                return self._file.append(line)
            except DisplacedError as displaced:
                self._go_on_elsewhere(displaced)
                return self._file.append(line)
        except (OSError, DisplacedError) as error:
            raise self._unwritable(error) from error

    def _go_on_elsewhere(self, displaced: DisplacedError) -> None:
        """Write on in a file beside, with all answers that there are, so that none that was paid for is lost."""
        names = numbered_names(f"{self.path.name}.rescued")
        other = next(path for path in map(self.path.with_name, names) if not os.path.lexists(path))
        try:
            self._file = self._file.copied_to(other)
            # Invariant: a place in the file is that of a line which is there.
            end = self._file.end
            self._lines = {key: line for key, line in self._lines.items() if line.start + line.length <= end}
            place = f"The answers are in {other}: give it that name"
        except OSError:  # Its folder was moved.
            self._file.keeps_name = False
            place = "The answers are in it, wherever it is now: move it back"
        self._displaced = f"{self.path} {displaced} while it was written. {place}, and resume it (resume=True, or --resume)."
        _log.warning("%s", self._displaced)

    def _blank(self, key: str, line: _Line) -> None:
        """Remove an answer that is to be replaced: its line becomes blank."""
        try:
            self._file.write_at(line.start, b" " * (line.length - 1))
        except OSError as error:
            raise self._unwritable(error) from error
        del self._lines[key]
        self._has_gaps = True
        if line.folder:
            remove_child(self.artifacts_folder, line.folder)

    def _unwritable(self, error: Exception) -> StoreError:
        kept = " Its answers are complete; when it can be written, resume it (resume=True, or --resume)."
        return StoreError(
            f"{self.path} cannot be written: {error}.{kept if self._lines else ''}", is_retryable=True
        )

    def forget_failures(self, again: Sequence[str] = ()) -> None:
        """Forget the failures of earlier runs, whose questions are asked again.

        Args:
            again: `abandoned` forgets abandoned questions, too, `limits` what has no answer as a program met a limit, and
                `files` answers whose artifacts are gone.
        """
        gone = self.without_files if "files" in again else set()
        if "limits" in again:
            gone |= {key for key, line in self._lines.items() if line.has_met_limit}
        for key in gone:
            self._blank(key, self._lines[key])
        lost = set() if "abandoned" in again else self.abandoned
        self._failed = {key: record for key, record in self._failed.items() if key in lost}
        self.write_failures()

    def fail(self, record: Mapping[str, Any]) -> None:
        """Record a failure, identified by its `id`. `write_failures` writes it."""
        self._failed[str(record["id"])] = dict(record)

    def write_failures(self) -> None:
        """Write the failures to their file, or delete it if there are none.

        Raises:
            StoreError: They cannot be written. The file is unchanged.
        """
        failed_path = Path(f"{self.path}.failed")
        lines = [_serialize(record) for key, record in self._failed.items() if key not in self._lines]
        try:
            if lines:
                atomic_write(failed_path, "".join(f"{line}\n" for line in lines).encode())
            else:
                failed_path.unlink(missing_ok=True)
        except OSError as error:
            raise StoreError(f"{failed_path} cannot be written: {error}.", is_retryable=True) from error


def read_records(path: Path, *, below: Path | None = None) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield the answers of a results file with where each begins; damaged lines are left out.

    Raises:
        InputError: It cannot be read.
    """
    for start, line in read_lines(path, below=below) if os.path.lexists(path) else ():
        if line.startswith(b"{"):
            with contextlib.suppress(ValueError):
                yield read_record(line), start


def read_failures(results: Path) -> Iterator[tuple[dict[str, Any], int]]:
    """Yield the failures beside a results file, as `read_records` does its answers."""
    yield from read_records(Path(f"{results}.failed"), below=results.parent)


def read_record(line: bytes) -> dict[str, Any]:
    """Return a line of a results file, in which everything that is used has its type.

    Raises:
        ValueError: It is none.
    """
    record = parse_json(line)
    if not _fits(record, _RECORD):
        raise ValueError("it is no answer")
    return dict(record)


_NUMBER, _MAX_INTEGER = (int, float), 2**53
_RECORD: dict[str, Any] = {
    "id": (str, int),
    "given": {"query": str, "own": dict, "digest": str},
    "computed": {
        "verdict": {"status": str, "reason": str},
        "execution": {"artifacts": [{"file": str, "name": str, "media_type": str}]},
        "usage": {"model_calls": int, "input_tokens": int, "output_tokens": int, "usd": _NUMBER},
        "notes": [str],
        "sources": [{"name": str}],
        "attempts": list,
        "seconds": _NUMBER,
        "error": str,
    },
}
"""What a record holds: types, objects with these keys, and lists of something."""
_REQUIRED = {"id", "given", "query", "own", "digest", "computed", "file", "name", "media_type"}


def _fits(value: Any, shape: Any) -> bool:
    if isinstance(shape, dict):
        parts = {key: value.get(key) for key in shape} if isinstance(value, dict) else {"id": None}
        return all(
            key not in _REQUIRED if part is None else _fits(part, shape[key]) for key, part in parts.items()
        )
    if isinstance(shape, list):
        return isinstance(value, list) and all(_fits(item, shape[0]) for item in value)
    if isinstance(value, bool):  # It is an integer for Python alone.
        return False
    return isinstance(value, shape) and not (isinstance(value, int) and abs(value) >= _MAX_INTEGER)


def _differences(before: Any, now: Any, name: str = "") -> list[str]:
    """Return in which settings two runs differ."""
    if isinstance(before, dict) and isinstance(now, dict):
        keys = sorted({*before, *now})
        return [each for key in keys for each in _differences(before.get(key), now.get(key), key)]
    return [] if before == now else [f"{name} {_short(before)}, now {_short(now)}"]


def _short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 80 else f"{text[:80]}…"


def _serialize(record: Mapping[str, Any]) -> str:
    return escape_invisible(json.dumps(record, ensure_ascii=False))
