"""Many questions: read from a file, each with an id by which its answer is known."""

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

__all__ = ["Question", "identified", "read_questions"]


@dataclass(frozen=True)
class Question:
    """A question with its id.

    Attributes:
        id: Names it and its answer.
        inputs: What a chain is given: `query`, and optionally `files`, `variables`, `tests`, `examples` and others.
    """

    id: str
    inputs: Mapping[str, Any] = field(hash=False)

    @property
    def query(self) -> str:
        """The question itself."""
        return str(self.inputs["query"])


def identified(questions: Iterable[str | Mapping[str, Any] | Question]) -> Iterator[Question]:
    """Give each question an id: its own `id`, or one of its content, the same in every run.

    Raises:
        InputError: One has no `query`, or an id comes twice.
    """
    given: set[str] = set()
    times: Counter[str] = Counter()
    for number, question in enumerate(questions, 1):
        if isinstance(question, Question):
            found = question
        else:
            found = _identified({"query": question} if isinstance(question, str) else dict(question), number, times)
        if found.id in given:
            raise InputError(f"Question {number} has the id {found.id!r} of an earlier one. Give each its own.")
        given.add(found.id)
        yield found


def _identified(inputs: dict[str, Any], number: int, times: Counter[str]) -> Question:
    try:
        check_query(inputs.get("query"))
    except InputError as error:
        raise InputError(f"Question {number}: {error}") from error
    own = inputs.pop("id", None)
    if own is not None:
        return Question(str(own), inputs)
    try:
        content = json.dumps(inputs, sort_keys=True, ensure_ascii=False)
    except (TypeError, ValueError) as error:
        raise InputError(f"Question {number} is no JSON: {error}") from error
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    times[digest] += 1
    return Question(digest if times[digest] == 1 else f"{digest}-{times[digest]}", inputs)


def read_questions(path: str | Path) -> Iterator[Question]:
    """Read questions from a file, one after the other.

    `.jsonl`: a text or an object with `query` a line; `.csv`: columns `query` and, if there is one, `id`; anything else: a
    question a line.

    Raises:
        InputError: The file cannot be read, or a line is no question.
    """
    path = Path(path)
    kinds = {".jsonl": _json_lines, ".ndjson": _json_lines, ".csv": _table}
    return identified(kinds.get(path.suffix.lower(), _lines)(path))


def _lines(path: Path) -> Iterator[str]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for line in file:
                if line.strip():
                    yield line.strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}") from error


def _json_lines(path: Path) -> Iterator[str | Mapping[str, Any]]:
    for number, line in enumerate(_lines(path), 1):
        try:
            value = json.loads(line)
        except ValueError as error:
            raise InputError(f"{path}, question {number}, is no JSON: {error}") from error
        if not isinstance(value, str | dict):
            raise InputError(f"{path}, question {number}, must be a text or an object with a query.")
        yield value


def _table(path: Path) -> Iterator[Mapping[str, Any]]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for row in csv.DictReader(file):
                yield {key: value for key, value in row.items() if key in ("id", "query") and value}
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} cannot be read: {error}") from error
