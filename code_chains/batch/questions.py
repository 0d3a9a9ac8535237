"""Questions from a file or an iterable, each with an id that also identifies its answer."""

from __future__ import annotations

import csv
import hashlib
import json
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from code_chains.errors import InputError
from code_chains.inputs import check_query

__all__ = ["Question", "read_questions", "with_ids"]


@dataclass(frozen=True)
class Question:
    """A question with its id.

    Attributes:
        id: Identifies the question and its answer.
        inputs: Inputs of a chain: `query`, and optionally `files`, `variables`, `tests`, `examples` and
            others.
    """

    id: str
    inputs: Mapping[str, Any] = field(hash=False)

    @property
    def query(self) -> str:
        """The text of the question."""
        return str(self.inputs["query"])


def with_ids(questions: Iterable[str | Mapping[str, Any] | Question]) -> Iterator[Question]:
    """Assign each question an id: its own `id`, or one derived from its content, which is the same in every run.

    Raises:
        InputError: A question has no `query`, or two have the same id.
    """
    ids: set[str] = set()
    occurrences: Counter[str] = Counter()
    for number, item in enumerate(questions, 1):
        if isinstance(item, Question):
            question = item
        else:
            inputs = {"query": item} if isinstance(item, str) else dict(item)
            question = _with_id(inputs, number, occurrences)
        if question.id in ids:
            raise InputError(
                f"Question {number} has the id {question.id!r} of an earlier question. Make ids unique."
            )
        ids.add(question.id)
        yield question


def _with_id(inputs: dict[str, Any], number: int, occurrences: Counter[str]) -> Question:
    try:
        check_query(inputs.get("query"))
    except InputError as error:
        raise InputError(f"Question {number}: {error}") from error
    own_id = inputs.pop("id", None)
    if own_id is not None:
        return Question(str(own_id), inputs)
    try:
        content = json.dumps(inputs, sort_keys=True, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"Question {number} is not JSON: {error}") from error
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    occurrences[digest] += 1
    suffix = f"-{occurrences[digest]}" if occurrences[digest] > 1 else ""
    return Question(f"{digest}{suffix}", inputs)


def read_questions(path: str | Path) -> Iterator[Question]:
    """Read questions from a file lazily.

    `.jsonl`: one string or object with `query` per line; `.csv`: a column `query` and optionally `id`;
        anything else: one
    question per line.

    Raises:
        InputError: The file cannot be read, or a line is not a question.
    """
    path = Path(path)
    readers = {".jsonl": _read_json_lines, ".ndjson": _read_json_lines, ".csv": _read_table}
    read = readers.get(path.suffix.lower(), _read_lines)
    return with_ids(read(path))


def _read_lines(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for line in file:
                if line.strip():
                    yield line.strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def _read_json_lines(path: Path) -> Iterator[str | Mapping[str, Any]]:
    for number, line in enumerate(_read_lines(path), 1):
        try:
            value = json.loads(line)
        except ValueError as error:
            raise InputError(f"{path}, question {number}, is not JSON: {error}") from error
        if not isinstance(value, str | dict):
            raise InputError(f"{path}, question {number}, must be a string or an object with a query.")
        yield value


def _read_table(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for row in csv.DictReader(file):
                yield {key: value for key, value in row.items() if key in ("id", "query") and value}
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
