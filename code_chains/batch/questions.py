"""Questions from a file or an iterable, each with an id that also identifies its answer."""

from __future__ import annotations

import csv
import hashlib
import json
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from code_chains.errors import InputError
from code_chains.inputs import check_keys, check_query, shortened


@dataclass(frozen=True)
class Question:
    """A question with its id.

    Attributes:
        id: Identifies the question and its answer.
        inputs: Inputs of a chain: `query`, and optionally `files`, `variables`, `tests`, `examples` and
            others.
        origin: Where it comes from, e.g. `questions.csv, line 3`; empty if it comes from no file.
    """

    id: str
    inputs: Mapping[str, Any] = field(hash=False)
    origin: str = field(default="", compare=False)

    @property
    def query(self) -> str:
        """The text of the question."""
        return str(self.inputs["query"])

    def __str__(self) -> str:
        """Return its origin, or else its id, and the beginning of its text."""
        text = shortened(" ".join(self.query.split()), _MAX_CHARS)
        return f"{self.origin or self.id} ({text})"


_MAX_CHARS = 60
_COLUMNS = ("id", "query", "files", "variables", "tests", "examples", "session_id")
_FORMATS = "Save it as UTF-8 text: .csv, .tsv, .json, .jsonl, or .txt with one question per line."
_JSON_COLUMNS = ("variables", "examples")
_SYNONYMS = {"question": "query", "prompt": "query", "answer": "expected"}
_COMMENT = re.compile(r"\s*#(\s|$)")
Item = tuple[str, Any]
"""Where a question of a file stands, and the question."""


def with_ids(questions: Iterable[str | Mapping[str, Any] | Question]) -> Iterator[Question]:
    """Assign each question an id: its own `id`, or one derived from its content, which is the same in every run.

    An empty question has an id as well: it fails when it is asked, and does not end a run of many.

    Raises:
        InputError: A question has no `query`, or two have the same id.
    """
    items = ((f"Question {number}", item) for number, item in enumerate(questions, 1))
    return (question for _, question in _unique(items))


def _unique(items: Iterable[Item]) -> Iterator[tuple[str, Question]]:
    """Yield questions with their places, and raise where two have the same id."""
    ids: set[str] = set()
    occurrences: Counter[str] = Counter()
    for place, item in items:
        question = item if isinstance(item, Question) else _with_id(_inputs(place, item), place, occurrences)
        if question.id in ids:
            raise InputError(f"{place} has the id {question.id!r} of an earlier question. Make ids unique.")
        ids.add(question.id)
        yield place, question


def _inputs(place: str, item: object) -> dict[str, Any]:
    if not isinstance(item, str | Mapping):
        raise InputError(f"{place} must be a string or an object with a query.")
    inputs = {"query": item} if isinstance(item, str) else dict(item)
    if "query" not in inputs:
        raise InputError(f"{place} has no query; its keys are {', '.join(map(str, inputs)) or 'none'}.")
    with _at(place):
        check_keys(inputs, _COLUMNS)
        if not isinstance(inputs["query"], str):
            check_query(inputs["query"])
    return inputs


@contextmanager
def _at(place: str) -> Iterator[None]:
    """Name the place of a question in errors about it."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{place}: {error}") from error


def _with_id(inputs: dict[str, Any], place: str, occurrences: Counter[str]) -> Question:
    own_id = inputs.pop("id", None)
    if own_id is not None:
        return Question(str(own_id), inputs)
    try:
        content = json.dumps(inputs, sort_keys=True, ensure_ascii=False, default=_path_text)
    except (TypeError, ValueError) as error:
        raise InputError(f"{place} is not JSON: {error}") from error
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    occurrences[digest] += 1
    suffix = f"-{occurrences[digest]}" if occurrences[digest] > 1 else ""
    return Question(f"{digest}{suffix}", inputs)


def read_questions(path: str | Path, *, files: Mapping[str, Path] | None = None) -> Iterator[Question]:
    """Read questions from a file lazily.

    `.jsonl`: one string or object with `query` per line; `.json`: an array of them; `.csv` and `.tsv`, separated by
    commas, semicolons or tabs: a column `query` or `question`, and optionally `id`, `files` (paths, separated by
    semicolons), `tests`, `variables` and `examples` (JSON); anything else: one question per line, and comments after `# `.

    Args:
        path: The file.
        files: Files for all questions, `{name: path}`.

    Raises:
        InputError: The file cannot be read, or an entry is not a question.
    """
    return as_questions(read_items(path), files=files, has_paths=True)


def read_items(path: str | Path, *, columns: Mapping[str, str] | None = None) -> Iterator[Item]:
    """Read what a file of questions holds lazily, each with its place, and no more validated than the format requires.

    Args:
        path: The file.
        columns: Further columns of tables, `{column: key}`; a query may have several names.

    Raises:
        InputError: The file cannot be read.
    """
    path = Path(path)
    if path.suffix.lower() in (".csv", ".tsv"):
        known = {**{name: name for name in _COLUMNS}, **(columns or {})}
        return _read_table(path, known)
    readers = {".jsonl": _read_json_lines, ".ndjson": _read_json_lines, ".json": _read_json}
    return readers.get(path.suffix.lower(), _read_lines)(path)


def as_questions(
    items: Iterable[Item], *, files: Mapping[str, Path] | None = None, has_paths: bool = False
) -> Iterator[Question]:
    """Validate what files hold as questions, whose origins are their places.

    Args:
        items: The questions with their places.
        files: Files for all questions, `{name: path}`.
        has_paths: Whether text in `files` is a path: only in a file that the user of this machine has named.

    Raises:
        InputError: An entry is not a question, or two have the same id.
    """
    for place, question in _unique(_with_files(items, files or {}, has_paths=has_paths)):
        yield replace(question, origin=question.origin or place)


def _with_files(items: Iterable[Item], files: Mapping[str, Path], *, has_paths: bool) -> Iterator[Item]:
    """Yield questions with the files for all, and their own."""
    for place, item in items:
        if isinstance(item, Question):
            yield place, item
            continue
        inputs = _inputs(place, item)
        if own := _own_files(place, inputs.get("files") or {}):
            inputs["files"] = own = _as_paths(own) if has_paths else own
        if files:
            inputs["files"] = {**files, **own}
        with _at(place):
            check_query(inputs["query"])
        yield place, inputs


def _own_files(place: str, files: object) -> dict[str, Any]:
    if isinstance(files, Mapping):
        return dict(files)
    if isinstance(files, list) and all(isinstance(path, str | Path) for path in files):
        return {Path(path).name: path for path in files}
    raise InputError(f"{place}: files must be an object, name to path, or a list of paths.")


def _as_paths(files: Mapping[str, Any]) -> dict[str, Any]:
    return {name: Path(path) if isinstance(path, str) else path for name, path in files.items()}


def _path_text(value: object) -> str:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")


def _read_text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8-sig")
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}. {_FORMATS}") from error


def _read_lines(path: Path) -> Iterator[Item]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            for number, line in enumerate(file, 1):
                if line.strip() and not _COMMENT.match(line):
                    yield f"{path}, line {number}", line.strip()
    except (OSError, UnicodeDecodeError) as error:
        raise InputError(f"{path} cannot be read: {error}. {_FORMATS}") from error


def _read_json_lines(path: Path) -> Iterator[Item]:
    for place, line in _read_lines(path):
        yield place, _parse_json(place, line)


def _parse_json(place: str, text: str) -> Any:
    try:
        return json.loads(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"{place}, is not JSON: {error}") from error


def _read_json(path: Path) -> Iterator[Item]:
    value = _parse_json(str(path), _read_text(path))
    if not isinstance(value, list):
        raise InputError(f"{path} must be an array of questions: strings, or objects with a query.")
    for number, item in enumerate(value, 1):
        yield f"{path}, question {number}", item


def _read_table(path: Path, columns: Mapping[str, str]) -> Iterator[Item]:
    try:
        with path.open(encoding="utf-8-sig", newline="") as file:
            header = file.readline()
            file.seek(0)
            rows = csv.DictReader(file, delimiter=max(",;\t", key=header.count), skipinitialspace=True)
            names = [str(name).strip().lower() for name in rows.fieldnames or ()]
            rows.fieldnames = _keys_of_columns(path, names, columns)
            for row in rows:
                place = f"{path}, line {rows.line_num}"
                if inputs := {key: text for key, text in row.items() if key and text}:
                    yield place, _row_inputs(place, inputs)
    except (OSError, UnicodeDecodeError, csv.Error) as error:
        raise InputError(f"{path} cannot be read: {error}. {_FORMATS}") from error


def _keys_of_columns(path: Path, names: list[str], columns: Mapping[str, str]) -> list[str]:
    """Return the key of the inputs for each column; empty for a column that is not read."""
    keys = [columns.get(name, "") for name in names]
    if "query" not in keys:  # The names in most data sets.
        keys = [
            key or columns.get(_SYNONYMS.get(name, ""), "") for name, key in zip(names, keys, strict=True)
        ]
    if "query" not in keys:
        raise InputError(f"{path} has no column query; its columns are {', '.join(names) or 'none'}.")
    for key in filter(None, keys):
        if len(same := {name for name in names if columns.get(name) == key}) > 1:
            raise InputError(f"{path}: {' and '.join(sorted(same))} are the same. Keep one of these columns.")
    return keys


def _row_inputs(place: str, row: Mapping[str, Any]) -> dict[str, Any]:
    inputs = dict(row)
    inputs |= {
        key: _parse_json(f"{place}, column {key}", inputs[key]) for key in _JSON_COLUMNS if key in inputs
    }
    if "files" in inputs:
        paths = [path.strip() for path in inputs["files"].split(";") if path.strip()]
        inputs["files"] = {Path(path).name: path for path in paths}
        if len(inputs["files"]) < len(paths):
            raise InputError(f"{place}: two files have the same name.")
    return inputs
