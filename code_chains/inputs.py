"""The inputs of a question: its text, files and variables, validated early and described for the model."""

from __future__ import annotations

import csv
import json
import keyword
import os
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from langchain_core.messages import BaseMessage, convert_to_messages

from code_chains.errors import InputError

__all__ = [
    "MAX_QUERY_CHARS",
    "check_code",
    "check_files",
    "check_history",
    "check_name",
    "check_query",
    "check_session_id",
    "check_variables",
    "describe",
    "fenced",
    "shortened",
    "table_kind",
]

MAX_QUERY_CHARS = 100_000
"""Maximum length of a question, in characters. Put longer texts into a file."""
_SAMPLE_BYTES, _SAMPLE_LINES = 64 * 1024, 50
"""How much of a file is read to describe it."""
_MAX_COLUMNS, _MAX_NAME_CHARS, _MAX_ROW_CHARS, _MAX_TEXT_CHARS = 60, 60, 300, 400
_COLUMN_NAME = re.compile(r"[^\W\d][\w .()/%€$-]*")
"""What is surely a header and no row of data: words."""
_TABLES = {("numpy", "ndarray"), ("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table")}


def check_history(history: Any) -> str | list[BaseMessage]:
    """Return the conversation so far as text or messages.

    Args:
        history: Text, or messages in any form that LangChain knows: its own, `(role, text)` or OpenAI's dicts.

    Raises:
        InputError: It is none of these.
    """
    if isinstance(history, str):
        return history
    is_single = isinstance(history, BaseMessage | Mapping) or (
        isinstance(history, tuple) and len(history) == 2 and all(isinstance(part, str) for part in history)
    )
    try:
        return convert_to_messages([history] if is_single else history)
    except (ValueError, TypeError, KeyError, NotImplementedError, AttributeError) as error:
        raise InputError(
            f"history must be text or messages, not {shortened(repr(history), 100)}: {error}"
        ) from error


def check_query(query: object) -> str:
    """Return a validated question.

    Raises:
        InputError: It is not text, empty, or longer than `MAX_QUERY_CHARS` characters.
    """
    if not isinstance(query, str):
        raise InputError(f"The question must be text, not {type(query).__name__}.")
    if not query.strip():
        raise InputError(
            'The question is empty. Ask something, e.g. "What is the sum of the numbers from 1 to 5?".'
        )
    if not _is_text(query):
        raise InputError("The question holds characters that are no text (broken UTF-8). Type them again.")
    if len(query) > MAX_QUERY_CHARS:
        raise InputError(
            f"The question has {len(query):,} characters; at most {MAX_QUERY_CHARS:,} are allowed. Put long texts"
            " into a file and pass it with files=."
        )
    return query


def check_code(code: object) -> str:
    """Return validated source code.

    Raises:
        InputError: It is not text.
    """
    if not isinstance(code, str):
        raise InputError(f"Code must be text, not {type(code).__name__}.")
    return code


def check_session_id(session_id: object) -> str:
    """Return a validated name of a conversation.

    Raises:
        InputError: It is no text, empty, or longer than 500 characters.
    """
    if (
        not isinstance(session_id, str)
        or not session_id.strip()
        or len(session_id) > 500
        or not _is_text(session_id)
    ):
        raise InputError(f"session_id must be a text of 1 to 500 characters, not {str(session_id)[:100]!r}.")
    return session_id


def check_files(files: Mapping[str, Any] | None) -> dict[str, Path]:
    """Return files by their name in the working directory, each existing and readable.

    Raises:
        InputError: A name leaves the working directory, or a file is missing, unreadable or no regular file.
    """
    if not isinstance(files or {}, Mapping):
        raise InputError('files must be a mapping, e.g. {"sales.csv": "data/sales.csv"}.')
    checked = {check_name(name): _check_file(path) for name, path in (files or {}).items()}
    if len(checked) < len(files or {}):
        raise InputError("Two files have the same name.")
    for name in checked:
        if inside := [other for other in checked if other.startswith(f"{name}/")]:
            raise InputError(f"{name!r} cannot be a file and the folder of {inside[0]!r} at once.")
    return checked


def _is_text(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def check_name(name: object) -> str:
    """Return a validated file name, which does not lead out of the working directory.

    Raises:
        InputError: It is invalid.
    """
    text = name if isinstance(name, str) and name.isprintable() and _is_text(name) else ""
    path = PurePosixPath(text)
    wrong = not text or path.is_absolute() or ".." in path.parts or str(path) == "."
    if wrong or any(len(part.encode()) > 255 for part in path.parts) or len(text) > 1000:
        raise InputError(
            f"A file cannot be called {name!r}: give a name relative to the working directory, without '..'."
        )
    return str(path)


def _check_file(value: object) -> Path:
    if not isinstance(value, str | os.PathLike):
        raise InputError(f"A file is given by its path, not by {type(value).__name__}. Pass text or a Path.")
    path = Path(value)
    try:
        if not path.is_file():
            raise InputError(
                f"The file {str(path)!r} {_why_no_file(path)}. Paths are relative to {os.getcwd()}."
            )
        with path.open("rb"):
            return path
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"The file {str(path)!r} cannot be read: {error}.") from error


def _why_no_file(path: Path) -> str:
    if path.is_dir():
        return "is a directory"
    return "is no regular file" if path.exists() else "does not exist"


def check_variables(variables: Mapping[str, Any] | None) -> dict[str, Any]:
    """Return variables whose names are identifiers and whose values are JSON, arrays or frames.

    Raises:
        InputError: One is invalid; the message names it.
    """
    if not isinstance(variables or {}, Mapping):
        raise InputError('variables must be a mapping, e.g. {"n": 3}.')
    return {_check_variable(name): _check_value(name, value) for name, value in (variables or {}).items()}


def _check_variable(name: object) -> str:
    if (
        not isinstance(name, str)
        or not name.isidentifier()
        or keyword.iskeyword(name)
        or name.startswith("__")
    ):
        raise InputError(f"A variable cannot be called {name!r}: give it the name of a Python variable.")
    return name


def _check_value(name: str, value: Any) -> Any:
    if kind := table_kind(value):
        if kind != "numpy":
            _check_frame(name, value)
        return value
    try:
        # As the program will see it, with lists for tuples, so that the model is told the same.
        return json.loads(json.dumps(_plain(value), allow_nan=True))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"The variable {name!r} is no JSON value ({error}). Pass numbers, text, lists and dicts, NumPy arrays, pandas"
            " or polars frames, or a file."
        ) from error


def _plain(value: Any) -> Any:
    """Return a value with Python's numbers for NumPy's; raise `TypeError` for a dict that JSON would change."""
    if isinstance(value, Mapping):
        for key in value:
            if not isinstance(key, str):
                raise TypeError(f"the key {key!r} is no text, and would become the text {str(key)!r}")
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    is_scalar = type(value).__module__ == "numpy" and getattr(value, "shape", None) == ()
    return value.item() if is_scalar else value


def _check_frame(name: str, frame: Any) -> None:
    """Raise unless a frame can be passed as Arrow, before a model is paid."""
    try:
        import pyarrow
    except ImportError:
        raise InputError(
            f"The variable {name!r} is a table, which is passed as Arrow. Install it: pip install pyarrow"
        ) from None
    for column, dtype in getattr(getattr(frame, "dtypes", None), "items", dict)():
        try:
            if str(dtype) == "object":
                pyarrow.array(frame[column], from_pandas=True)
        except (pyarrow.ArrowException, OverflowError, ValueError, TypeError) as error:
            raise InputError(
                f"The column {column!r} of {name!r} holds values that no table can ({error}). Convert it, e.g. with"
                f" {name}[{column!r}].astype(str)."
            ) from error


def table_kind(value: object) -> str | None:
    """Return `numpy`, `pandas`, `polars` or `pyarrow` for their arrays and frames, None for anything else."""
    kind = type(value)
    library = kind.__module__.partition(".")[0]
    return library if (library, kind.__name__) in _TABLES else None


def describe(files: Mapping[str, Path], variables: Mapping[str, Any], *, schema_only: bool = False) -> str:
    """Describe files and variables for a model: sizes, columns and types; unless `schema_only`, first rows and values."""
    parts = [_describe_file(name, path, schema_only=schema_only) for name, path in files.items()]
    parts += [_describe_variable(name, value, schema_only=schema_only) for name, value in variables.items()]
    return "\n".join(parts)


def describe_inputs(values: Mapping[str, Any]) -> list[str]:
    """Describe files and variables for a model; empty if there are none."""
    files, variables = check_files(values.get("files")), check_variables(values.get("variables"))
    inputs = describe(files, variables, schema_only=bool(values.get("schema_only")))
    description = "\n".join(filter(None, [inputs, values.get("session_variables")]))
    return [f"What is there:\n{fenced(description)}"] if description else []


def _describe_variable(name: str, value: Any, *, schema_only: bool) -> str:
    kind = table_kind(value)
    if kind == "numpy":
        return f"- variable `{name}`: NumPy array of {value.dtype}, shape {value.shape}"
    if kind:
        columns = value.column_names if kind == "pyarrow" else value.columns
        names = ", ".join(
            f"`{_short(str(column), _MAX_NAME_CHARS)}`" for column in list(columns)[:_MAX_COLUMNS]
        )
        schema = f"- variable `{name}`: {kind} table, {value.shape[0]} rows, columns {names}"
        if schema_only:
            return schema
        rows = value.slice(0, 3) if kind == "pyarrow" else value.head(3)
        return f"{schema}; it begins with:\n{fenced(_short(str(rows), 2 * _MAX_TEXT_CHARS))}"
    if schema_only:
        size = f", {len(value)} items" if isinstance(value, list | dict) else ""
        return f"- variable `{name}`: {type(value).__name__}{size}"
    return f"- variable `{name}`: {type(value).__name__}, {_short(repr(value))}"


def _describe_file(name: str, path: Path, *, schema_only: bool) -> str:
    with path.open("rb") as file:
        text = file.read(_SAMPLE_BYTES).decode("utf-8-sig", errors="replace")
    head = f"- file `{name}` in the working directory, {path.stat().st_size:,} bytes"
    if "\0" in text:
        return f"{head}, binary"
    if path.suffix.lower() in {".csv", ".tsv"} or PurePosixPath(name).suffix.lower() in {".csv", ".tsv"}:
        return f"{head}, {_describe_table(text, schema_only=schema_only)}"
    if schema_only:
        return f"{head}, text"
    return f"{head}, begins with:\n{fenced(_short(text, _MAX_TEXT_CHARS))}"


def _describe_table(text: str, *, schema_only: bool) -> str:
    lines = text.splitlines()[:_SAMPLE_LINES]
    delimiter = _delimiter(lines)
    try:
        rows = [row for row in csv.reader(lines, delimiter=delimiter) if row]
    except csv.Error:
        rows = []
    if not rows:
        return "an empty table"
    columns = ", ".join(f"`{_short(column, _MAX_NAME_CHARS)}`" for column in rows[0][:_MAX_COLUMNS])
    more = f" and {len(rows[0]) - _MAX_COLUMNS} more" if len(rows[0]) > _MAX_COLUMNS else ""
    if schema_only:
        is_header = all(_COLUMN_NAME.fullmatch(column.strip()) for column in rows[0])
        return f"separated by {delimiter!r}, {f'columns {columns}{more}' if is_header else f'{len(rows[0])} columns'}"
    preview = "\n".join(_short(delimiter.join(row), _MAX_ROW_CHARS) for row in rows[:4])
    return f"separated by {delimiter!r}, columns {columns}{more}; it begins with:\n{fenced(preview)}"


def _delimiter(lines: list[str]) -> str:
    """Return the separator of a table: what most lines have as often as the first, outside of quotes.

    `csv.Sniffer` takes quadratic time and more for some texts; this is linear.
    """
    plain = ["".join(line.split('"')[::2]) for line in lines if line.strip()]
    counts = {sign: [line.count(sign) for line in plain] for sign in ",;\t|"}
    agreement = {}
    for sign, per_line in counts.items():
        if any(per_line[:1]):
            agreement[sign] = sum(count == per_line[0] for count in per_line)
    return max(agreement, key=lambda sign: (agreement[sign], counts[sign][0]), default=",")


def fenced(text: str, language: str = "text") -> str:
    """Return text inside a Markdown fence that the text itself cannot close, whatever it contains."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def _short(text: str, length: int = 120) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def shortened(text: str, length: int) -> str:
    """Return the beginning and the end of a text, of about so many characters at most."""
    half = length // 2
    return text if len(text) <= length else f"{text[:half]}\n… (shortened) …\n{text[-half:]}"
