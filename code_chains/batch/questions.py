"""Questions from a file or an iterable, each with an id that also identifies its answer."""

from __future__ import annotations

import csv
import hashlib
import itertools
import json
import re
import zipfile
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from functools import cached_property, lru_cache, partial
from pathlib import Path
from types import MappingProxyType
from typing import Any

from code_chains.errors import InputError, needs
from code_chains.executors.inputs import files_on_disk
from code_chains.inputs import check_keys, check_query, shortened
from code_chains.storage.files import sha256_file
from code_chains.storage.fingerprint import NotFingerprintableError, fingerprint
from code_chains.storage.foreign import open_file, parse_json, read_text, read_text_lines


@dataclass(frozen=True)
class Question:
    """A question with its id.

    Attributes:
        id: Identifies the question and its answer.
        inputs: Inputs of a chain: `query`, and optionally `files`, `variables`, `tests`, `examples` and others.
        origin: Where it comes from, e.g. `questions.csv, line 3`; empty if it comes from no file.
        own: What else its user brought, such as further columns: kept beside the answer, and never read.
    """

    id: str
    inputs: Mapping[str, Any] = field(hash=False)
    origin: str = field(default="", compare=False)
    own: Mapping[str, Any] = field(default_factory=dict, compare=False)

    @property
    def query(self) -> str:
        """The text of the question."""
        return str(self.inputs["query"])

    @cached_property
    def digest(self) -> str:
        """A checksum of its inputs with the content of its files; empty if something in them has none."""
        try:
            return fingerprint({**self.inputs, "files": digests_of(self.inputs.get("files"))})
        except (NotFingerprintableError, InputError, OSError):
            return ""

    def __str__(self) -> str:
        """Return its origin, or else its id, and the beginning of its text."""
        text = shortened(" ".join(self.query.split()), _MAX_CHARS)
        return f"{self.origin or self.id} ({text})"


class Entry(dict[str, Any]):
    """What a file says of a question: its id and the inputs of a chain, and in `own` all else."""

    own: Mapping[str, Any] = MappingProxyType({})


_MAX_CHARS = 60
_COLUMNS = ("id", "query", "files", "variables", "tests", "examples", "session_id", "stdin")
_INPUTS = (*_COLUMNS, "context", "history")
"""Keys that are inputs of a chain; in tables only the columns."""
_FORMATS = "Save it as UTF-8 text: .csv, .tsv, .json, .jsonl, or .txt with one question per line; or as .xlsx or .parquet."
TABLES = {".csv", ".tsv", ".xlsx", ".parquet"}
_JSON_COLUMNS = ("variables", "examples")
_MAX_EXPANDED_BYTES, _MAX_WORKBOOK_BYTES = 200 << 20, 50 << 20
_MAX_VALUES, _MAX_ELEMENTS, _BYTES_OF_OBJECT = 10_000_000, 2_000_000, 250
"""Of a Parquet file, and of a workbook, which takes ten seconds."""
_MAX_ROWS, _MAX_COLUMNS, _MAX_LISTED = 1_000_000, 1_000, 20
"""Rows of a table, and names of its columns in a message."""
_SYNONYMS = {"question": "query", "prompt": "query", "answer": "expected"}
_NAMES_OF_QUERY = ("question", "prompt", "input")
_NO_SEPARATOR = "\x1f"
"""Separates nothing: in a table of one column a question is a whole line."""
_COMMENT = re.compile(r"\s*#(\s|$)")
DATASET = "langsmith:"
"""What the name of a dataset of LangSmith begins with, in place of a path."""
Item = tuple[str, Any]
"""Where a question of a file stands, and the question."""


def with_ids(questions: Iterable[str | Mapping[str, Any] | Question]) -> Iterator[Question]:
    """Assign each question an id: its own `id`, or one derived from its content, which is the same in every run.

    An empty question has an id as well: it fails when it is asked, and does not end a run of many.

    Args:
        questions: Texts, mappings or questions, or a frame of pandas with a column `query` or `question`.

    Raises:
        InputError: A question has no `query`, or two have the same id.
    """
    if hasattr(questions, "iterrows"):
        items: Iterable[Item] = frame_items("Row", questions)
    else:
        items = ((f"Question {number}", item) for number, item in enumerate(questions, 1))
    return (question for _, question in _unique(items))


def _unique(items: Iterable[Item]) -> Iterator[tuple[str, Question]]:
    """Yield questions with their places, and raise where two have the same id."""
    ids: set[str] = set()
    occurrences: Counter[str] = Counter()
    for place, item in items:
        question = item if isinstance(item, Question) else _with_id(_entry(place, item), place, occurrences)
        if question.id in ids:
            raise InputError(f"{place} has the id {question.id!r} of an earlier question. Make ids unique.")
        ids.add(question.id)
        yield place, question


def _entry(place: str, item: object) -> Entry:
    if not isinstance(item, str | Mapping):
        raise InputError(f"{place} must be a string or an object with a query.")
    if isinstance(item, Entry):
        entry = item
    else:
        values = {"query": item} if isinstance(item, str) else _with_query(item)
        if "query" in values:
            with _at(place):
                check_keys(values, _COLUMNS)
        entry = Entry((key, value) for key, value in values.items() if key in _INPUTS)
        entry.own = {key: value for key, value in values.items() if key not in _INPUTS}
    if "query" not in entry:
        raise InputError(
            f"{place} has no query; its keys are {', '.join(map(str, [*entry, *entry.own])) or 'none'}."
        )
    with _at(place):
        if not isinstance(entry["query"], str):
            check_query(entry["query"])
    return entry


def _with_query(item: Mapping[str, Any]) -> dict[str, Any]:
    """Return an object with its question as `query`, also if it is the example of a dataset, or calls it otherwise."""
    values = dict(item)
    if "query" not in values and isinstance(values.get("inputs"), Mapping):
        values |= values.pop("inputs")
    for name in _NAMES_OF_QUERY:
        if "query" not in values and name in values:
            values["query"] = values.pop(name)
    return values


@contextmanager
def _at(place: str) -> Iterator[None]:
    """Name the place of a question in errors about it."""
    try:
        yield
    except InputError as error:
        raise InputError(f"{place}: {error}") from error


def _with_id(entry: Entry, place: str, occurrences: Counter[str]) -> Question:
    inputs = {key: value for key, value in entry.items() if key != "id"}
    if entry.get("id") is not None:
        return Question(str(entry["id"]), inputs, own=entry.own)
    try:
        content = json.dumps(inputs, sort_keys=True, ensure_ascii=False, default=_path_text)
    except (TypeError, ValueError) as error:
        raise InputError(f"{place} is not JSON: {error}") from error
    digest = hashlib.sha256(content.encode()).hexdigest()[:16]
    occurrences[digest] += 1
    suffix = f"-{occurrences[digest]}" if occurrences[digest] > 1 else ""
    return Question(f"{digest}{suffix}", inputs, own=entry.own)


def read_questions(path: str | Path, *, files: Mapping[str, Path] | None = None) -> Iterator[Question]:
    """Read questions from a file lazily.

    `.jsonl`: one string or object with `query` per line; `.json`: an array of them; `.csv` and `.tsv`, separated by
    commas, semicolons or tabs, `.xlsx` and `.parquet`: a column `query` or `question`, and optionally `id`, `files`
    (paths, separated by semicolons), `tests`, `session_id`, `stdin`, `variables` and `examples` (JSON); anything else: one
    question per line, and comments after `# `. Other columns and keys stay beside the answer.

    Args:
        path: The file, or `langsmith:NAME` for a dataset of LangSmith.
        files: Files for all questions, `{name: path}`.

    Raises:
        InputError: The file cannot be read, or an entry is not a question.
    """
    return as_questions(read_items(path), files=files, has_paths=True)


def read_items(path: str | Path, *, columns: Mapping[str, str] | None = None) -> Iterator[Item]:
    """Read what a file of questions holds lazily, each with its place, and no more validated than the format requires.

    Args:
        path: The file, or `langsmith:NAME` for a dataset of LangSmith, which needs `LANGSMITH_API_KEY`.
        columns: Further columns of tables, `{column: key}`; a query may have several names.

    Raises:
        InputError: The file or the dataset cannot be read.
    """
    if str(path).startswith(DATASET):
        return _read_dataset(str(path).removeprefix(DATASET))
    path = Path(path)
    known = {**{name: name for name in _COLUMNS}, **(columns or {})}
    if path.suffix.lower() in (".csv", ".tsv"):
        return _read_table(path, known)
    if path.suffix.lower() == ".xlsx":
        return _read_workbook(path, known)
    if path.suffix.lower() == ".parquet":
        return _read_parquet(path, known)
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
        entry = _entry(place, item)
        if own := _own_files(place, entry.get("files") or {}):
            entry["files"] = own = _as_paths(place, own) if has_paths else own
        if files:
            entry["files"] = {**files, **own}
        with _at(place):
            check_query(entry["query"])
        yield place, entry


def _own_files(place: str, files: object) -> dict[str, Any]:
    if isinstance(files, Mapping):
        return dict(files)
    if isinstance(files, list) and all(isinstance(path, str | Path) for path in files):
        return {Path(path).name: path for path in files}
    raise InputError(f"{place}: files must be an object, name to path, or a list of paths.")


def _as_paths(place: str, files: Mapping[str, Any]) -> dict[str, Any]:
    """Return paths, which are absolute, so that they name the same file in any folder, and exist."""
    paths = {name: Path(path).absolute() if isinstance(path, str) else path for name, path in files.items()}
    for path in paths.values():
        if isinstance(path, Path) and not path.is_file():
            raise InputError(f"{place}: there is no file {str(path)!r}.")
    return paths


def digests_of(files: Any) -> dict[str, str]:
    """Return the checksum of each file's content, by name."""
    with files_on_disk(files) as paths:
        return {name: digest_of(path) for name, path in paths.items()}


def digest_of(path: Path) -> str:
    """Return the checksum of a file, which is computed once as long as it is not changed."""
    status = path.stat()
    return _digest_of(path, status.st_mtime_ns, status.st_size)


@lru_cache(maxsize=10_000)
def _digest_of(path: Path, _modified: int, _size: int) -> str:
    return sha256_file(path)


def _path_text(value: object) -> str:
    if isinstance(value, Path):
        return str(value)
    raise TypeError(f"{type(value).__name__} is no JSON value")


def _read_dataset(name: str) -> Iterator[Item]:
    """Yield the examples of a dataset of LangSmith, as its exported files have them."""
    from langsmith import Client
    from langsmith.utils import LangSmithError

    try:
        for number, example in enumerate(Client().list_examples(dataset_name=name), 1):
            item = {"id": str(example.id), "inputs": example.inputs or {}}
            yield (
                f"{name}, example {number}",
                item | ({"outputs": example.outputs} if example.outputs else {}),
            )
    except LangSmithError as error:
        remedy = "Set LANGSMITH_API_KEY, or save the dataset as a file."
        raise InputError(f"The dataset {name!r} of LangSmith cannot be read: {error} {remedy}") from error


def _lines(path: Path) -> Iterator[str]:
    try:
        yield from read_text_lines(path)
    except InputError as error:
        raise InputError(f"{error} {_FORMATS}") from error


def _read_lines(path: Path) -> Iterator[Item]:
    for number, line in enumerate(_lines(path), 1):
        if line.strip() and not _COMMENT.match(line):
            yield f"{path}, line {number}", line.strip()


def _read_json_lines(path: Path) -> Iterator[Item]:
    for place, line in _read_lines(path):
        yield place, _parse_json(place, line)


def _parse_json(place: str, text: str) -> Any:
    try:
        return parse_json(text)
    except ValueError as error:
        raise InputError(f"{place}, is not JSON: {error}") from error


def _read_json(path: Path) -> Iterator[Item]:
    value = _parse_json(str(path), read_text(path))
    if not isinstance(value, list):
        raise InputError(f"{path} must be an array of questions: strings, or objects with a query.")
    for number, item in enumerate(value, 1):
        yield f"{path}, question {number}", item


def _read_table(path: Path, columns: Mapping[str, str]) -> Iterator[Item]:
    lines = _lines(path)
    header = next(lines, "")
    separator = max(",;\t", key=header.count)
    try:
        rows = csv.DictReader(
            itertools.chain([header], lines),
            delimiter=separator if separator in header else _NO_SEPARATOR,
            skipinitialspace=True,
        )
        names = [str(name).strip() for name in rows.fieldnames or ()]
        rows.fieldnames = _keys_of_columns(str(path), [name.lower() for name in names], columns)
        columns_of = list(zip(rows.fieldnames, names, strict=True))
        rows.fieldnames = list(map(str, range(len(names))))
        for row in rows:
            place = f"{path}, line {rows.line_num}"
            cells = [row[str(index)] for index in range(len(names))]
            if any(row.get(None) or ()):
                more = f"it has more cells than there are columns. Put texts with {separator!r} in quotation marks"
                raise InputError(f"{place}: {more}.")
            if any(cells):
                yield place, _row_entry(place, columns_of, cells)
    except csv.Error as error:
        raise InputError(f"{path} cannot be read: {error}. {_FORMATS}") from error


def _read_workbook(path: Path, columns: Mapping[str, str]) -> Iterator[Item]:
    """Read the first sheet of a workbook row by row, as it may say that it has any number of cells."""
    with needs("data", "questions", path.name):
        import openpyxl
    with open_file(path) as file:
        try:
            _check_parts(zipfile.ZipFile(file))
            sheet = openpyxl.load_workbook(file, read_only=True, data_only=True).worksheets[0]
            sheet.reset_dimensions()
            rows = sheet.iter_rows()
            names = [str(_content(cell) or "").strip() for cell in next(rows, ())]
            yield from _row_items(str(path), names, (map(_content, row) for row in rows), columns)
        except InputError:
            raise
        except Exception as error:  # The reader has errors of its own.
            raise _unreadable(path, error) from error


def _check_parts(archive: zipfile.ZipFile) -> None:
    """Count first what the reader of workbooks makes objects of.

    Raises:
        OSError: It is too much.
    """
    if sum(member.file_size for member in archive.infolist()) > _MAX_WORKBOOK_BYTES:
        raise OSError(f"it expands to more than {_MAX_WORKBOOK_BYTES:,} bytes")
    elements = 0
    for member in archive.infolist():
        with archive.open(member) as part:
            end = b""
            for chunk in iter(partial(part.read, 1 << 20), b""):
                elements += chunk.count(b"<")
                # Of an entity a few bytes expand to gigabytes, as an alias does. No writer of workbooks declares any.
                text = (end + chunk).replace(b"\0", b"")
                if b"<!DOCTYPE" in text:
                    raise OSError("it declares a document type, which no workbook needs")
                end = chunk[-32:]
    if elements > _MAX_ELEMENTS:
        raise OSError(f"it has more than {_MAX_ELEMENTS:,} elements")


def _content(cell: Any) -> Any:
    """Return the content of a cell of a workbook; None for an empty one and an error such as `#N/A`."""
    value = None if cell.data_type == "e" else cell.value
    return int(value) if isinstance(value, float) and value.is_integer() else value


def _read_parquet(path: Path, columns: Mapping[str, str]) -> Iterator[Item]:
    with needs("data", "questions", path.name):
        from pyarrow.parquet import ParquetFile
    try:
        with open_file(path) as file:
            described = ParquetFile(file)
            groups = [described.metadata.row_group(number) for number in range(described.num_row_groups)]
            if sum(group.total_byte_size for group in groups) > _MAX_EXPANDED_BYTES:
                raise OSError(f"it expands to more than {_MAX_EXPANDED_BYTES:,} bytes")
            # A value that is repeated takes no bytes.
            chunks = [group.column(number) for group in groups for number in range(group.num_columns)]
            if sum(chunk.num_values for chunk in chunks) > _MAX_VALUES:
                raise OSError(f"it has more than {_MAX_VALUES:,} values")
            sizes = {
                column.path: _bytes_of_value(column)
                for column in map(described.schema.column, range(len(described.schema)))
            }
            if sum(chunk.num_values * sizes[chunk.path_in_schema] for chunk in chunks) > _MAX_EXPANDED_BYTES:
                raise OSError(f"its values take more than {_MAX_EXPANDED_BYTES:,} bytes")
            # Invariant: texts that are repeated stay one text.
            texts = {chunk.path_in_schema for chunk in chunks if chunk.physical_type == "BYTE_ARRAY"}
            frame = ParquetFile(file, read_dictionary=sorted(texts)).read().to_pandas()
    except Exception as error:  # The reader has errors of its own.
        raise _unreadable(path, error) from error
    yield from frame_items(str(path), frame, columns)


def _bytes_of_value(column: Any) -> int:
    """Return what a value of a Parquet column takes at least in a frame: one within lists or structures is an object."""
    is_nested = column.max_repetition_level > 0 or "." in column.path
    return int(max(8, column.length or 0) + (_BYTES_OF_OBJECT if is_nested else 0))


def _unreadable(path: Path, error: Exception) -> InputError:
    reason = str(error) or type(error).__name__
    return InputError(f"{path} cannot be read: {reason}. {_FORMATS}")


def frame_items(place: str, frame: Any, columns: Mapping[str, str] | None = None) -> Iterator[Item]:
    """Read the rows of a frame of pandas as questions.

    Args:
        place: What the frame is called in messages.
        frame: The frame.
        columns: Columns that are read, `{column: key}`.
    """
    names = [str(name).strip() for name in frame.columns]
    known = columns or {name: name for name in _COLUMNS}
    yield from _row_items(place, names, frame.itertuples(index=False, name=None), known)


def _row_items(
    place: str, names: list[str], rows: Iterable[Iterable[Any]], columns: Mapping[str, str]
) -> Iterator[Item]:
    """Read rows as questions; those without content are left out.

    Raises:
        InputError: There is no column with questions; or the rows hold too much.
    """
    keys = _keys_of_columns(place, [name.lower() for name in names], columns)
    columns_of = list(zip(keys, names, strict=True))
    for number, row in enumerate(rows, 2):
        if number > _MAX_ROWS:
            raise InputError(f"{place} has more than {_MAX_ROWS:,} rows. Split it, or save it as .jsonl.")
        # A missing cell of a frame is not equal to itself, or cannot be compared.
        cells = [None if _is_missing(cell) else cell for cell in itertools.islice(row, len(names))]
        if any(cell is not None and not (isinstance(cell, str) and not cell) for cell in cells):
            cells += [None] * (len(names) - len(cells))
            row_place = f"{place}, row {number}"
            yield row_place, _row_entry(row_place, columns_of, cells)


def _is_missing(cell: Any) -> bool:
    try:
        return cell is None or bool(cell != cell)
    except (TypeError, ValueError):
        return type(cell).__name__ == "NAType"


def _keys_of_columns(path: str, names: list[str], columns: Mapping[str, str]) -> list[str]:
    """Return the key of the inputs for each column; empty for a column that is not read."""
    # Invariant: each row holds a cell for each column, so that their product is bounded by the size of the file.
    if len(names) > _MAX_COLUMNS:
        raise InputError(
            f"{path} has more than {_MAX_COLUMNS:,} columns. Leave out those that are no part of a question."
        )
    keys = [columns.get(name, "") for name in names]
    if "query" not in keys:  # The names in most data sets.
        keys = [
            key or columns.get(_SYNONYMS.get(name, ""), "") for name, key in zip(names, keys, strict=True)
        ]
    if "query" not in keys:
        more = f" and {len(names) - _MAX_LISTED:,} more" if len(names) > _MAX_LISTED else ""
        listed = ", ".join(shortened(name, _MAX_CHARS) for name in names[:_MAX_LISTED]) or "none"
        raise InputError(f"{path} has no column query; its columns are {listed}{more}.")
    for key in filter(None, keys):
        if len(same := {name for name in names if columns.get(name) == key}) > 1:
            raise InputError(f"{path}: {' and '.join(sorted(same))} are the same. Keep one of these columns.")
    return keys


def _row_entry(place: str, columns: Sequence[tuple[str, str]], cells: Sequence[Any]) -> Entry:
    """Return what a row says, by the key of each column, which is empty for one of the user's own."""
    inputs, own = Entry(), dict[str, Any]()
    for (key, name), cell in zip(columns, cells, strict=True):
        if not key:
            own[name] = cell
        elif cell not in (None, ""):
            inputs[key] = cell if isinstance(cell, str) else _cell_text(cell)
    inputs.own = own
    for key in _JSON_COLUMNS:
        if key in inputs:
            inputs[key] = _parse_json(f"{place}, column {key}", inputs[key])
    if "files" in inputs:
        paths = [path.strip() for path in inputs["files"].split(";") if path.strip()]
        inputs["files"] = {Path(path).name: path for path in paths}
        if len(inputs["files"]) < len(paths):
            raise InputError(f"{place}: two files have the same name.")
    return inputs


def _cell_text(cell: Any) -> str:
    """Return a cell that is no text as one: a whole number without decimals, as it was written."""
    return str(int(cell)) if isinstance(cell, float) and cell.is_integer() else str(cell)
