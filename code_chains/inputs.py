"""What comes in with a question: the question itself, files and variables, checked early and described for the model."""

from __future__ import annotations

import csv
import json
import keyword
import os
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from typing import Any

from code_chains.errors import InputError

__all__ = [
    "MAX_QUERY",
    "check_files",
    "check_name",
    "check_query",
    "check_session_id",
    "check_variables",
    "describe",
    "fenced",
    "shortened",
    "table_kind",
]

MAX_QUERY = 100_000
"""Longest question, in characters. Longer texts belong into a file."""
_SAMPLE = 64 * 1024
_TABLES = {("numpy", "ndarray"), ("pandas", "DataFrame"), ("polars", "DataFrame"), ("pyarrow", "Table")}


def check_query(query: object) -> str:
    """The question, if it is one.

    Raises:
        InputError: It is not text, empty, or longer than `MAX_QUERY` characters.
    """
    if not isinstance(query, str):
        raise InputError(f"The question must be text, not {type(query).__name__}.")
    if not query.strip():
        raise InputError('The question is empty. Ask something, e.g. "What is the sum of the numbers from 1 to 5?".')
    if not _is_text(query):
        raise InputError("The question holds characters that are no text (broken UTF-8). Type them again.")
    if len(query) > MAX_QUERY:
        raise InputError(
            f"The question has {len(query):,} characters; at most {MAX_QUERY:,} are allowed. Put long texts into a file"
            " and pass it with files=."
        )
    return query


def check_session_id(session_id: object) -> str:
    """The name of a conversation.

    Raises:
        InputError: It is no text, empty, or longer than 500 characters.
    """
    if not isinstance(session_id, str) or not session_id.strip() or len(session_id) > 500 or not _is_text(session_id):
        raise InputError(f"session_id must be a text of 1 to 500 characters, not {str(session_id)[:100]!r}.")
    return session_id


def check_files(files: Mapping[str, Any] | None) -> dict[str, Path]:
    """Files by the name they get in the working directory, each existing and readable.

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
    """The name of a file in a working directory, which does not lead out of it.

    Raises:
        InputError: It does, or it is none.
    """
    text = name if isinstance(name, str) and name.isprintable() and _is_text(name) else ""
    path = PurePosixPath(text)
    wrong = not text or path.is_absolute() or ".." in path.parts or str(path) == "."
    if wrong or any(len(part.encode()) > 255 for part in path.parts) or len(text) > 1000:
        raise InputError(
            f"A file cannot be called {name!r}: give a name relative to the working directory, without '..'."
        )
    return str(path)


def _check_file(given: object) -> Path:
    if not isinstance(given, str | os.PathLike):
        raise InputError(f"A file is given by its path, not by {type(given).__name__}. Pass text or a Path.")
    path = Path(given)
    try:
        if not path.is_file():
            kind = (
                "is a directory" if path.is_dir() else "does not exist" if not path.exists() else "is no regular file"
            )
            raise InputError(f"The file {str(path)!r} {kind}. Files are looked for from {os.getcwd()}.")
        with path.open("rb"):
            return path
    except InputError:
        raise
    except (OSError, ValueError) as error:
        raise InputError(f"The file {str(path)!r} cannot be read: {error}.") from error


def check_variables(variables: Mapping[str, Any] | None) -> dict[str, Any]:
    """Variables whose names are identifiers and whose values are JSON, arrays or frames.

    Raises:
        InputError: They are not; it names the first that is wrong.
    """
    if not isinstance(variables or {}, Mapping):
        raise InputError('variables must be a mapping, e.g. {"n": 3}.')
    return {_check_variable(name): _check_value(name, value) for name, value in (variables or {}).items()}


def _check_variable(name: object) -> str:
    if not isinstance(name, str) or not name.isidentifier() or keyword.iskeyword(name) or name.startswith("__"):
        raise InputError(f"A variable cannot be called {name!r}: give it the name of a Python variable.")
    return name


def _check_value(name: str, value: Any) -> Any:
    if table_kind(value):
        return value
    try:
        # What a program gets: text as keys, lists for tuples. The model must be told of that, not of what it was made from.
        return json.loads(json.dumps(value, allow_nan=True))
    except (TypeError, ValueError, RecursionError) as error:
        raise InputError(
            f"The variable {name!r} is no JSON value ({error}). Pass numbers, text, lists and dicts, NumPy arrays, pandas"
            " or polars frames, or a file."
        ) from error


def table_kind(value: object) -> str | None:
    """`numpy`, `pandas`, `polars` or `pyarrow` for an array or frame of these libraries, None for anything else."""
    kind = type(value)
    library = kind.__module__.partition(".")[0]
    return library if (library, kind.__name__) in _TABLES else None


def describe(files: Mapping[str, Path], variables: Mapping[str, Any]) -> str:
    """Tell a model what is there: each file with its size, columns and first rows, each variable with its type."""
    parts = [_describe_file(name, path) for name, path in files.items()]
    return "\n".join([*parts, *(_describe_variable(name, value) for name, value in variables.items())])


def told(values: Mapping[str, Any]) -> list[str]:
    """The part of a message that tells a model which files and variables there are; none where there are none."""
    there = describe(check_files(values.get("files")), check_variables(values.get("variables")))
    there = "\n".join(filter(None, [there, values.get("kept")]))
    return [f"What is there:\n{fenced(there)}"] if there else []


def _describe_variable(name: str, value: Any) -> str:
    kind = table_kind(value)
    if kind == "numpy":
        return f"- variable `{name}`: NumPy array of {value.dtype}, shape {value.shape}"
    if kind:
        columns = value.column_names if kind == "pyarrow" else value.columns
        named = ", ".join(f"`{_short(str(column), 60)}`" for column in list(columns)[:60])
        shown = fenced(_short(str(value.slice(0, 3) if kind == "pyarrow" else value.head(3)), 800))
        return f"- variable `{name}`: {kind} table, {value.shape[0]} rows, columns {named}; it begins with:\n{shown}"
    return f"- variable `{name}`: {type(value).__name__}, {_short(repr(value))}"


def _describe_file(name: str, path: Path) -> str:
    with path.open("rb") as file:
        text = file.read(_SAMPLE).decode("utf-8-sig", errors="replace")
    head = f"- file `{name}` in the working directory, {path.stat().st_size:,} bytes"
    if "\0" in text:
        return f"{head}, binary"
    if path.suffix.lower() in {".csv", ".tsv"} or PurePosixPath(name).suffix.lower() in {".csv", ".tsv"}:
        return f"{head}, {_describe_table(text)}"
    return f"{head}, begins with:\n{fenced(_short(text, 400))}"


def _describe_table(text: str) -> str:
    try:
        dialect: type[csv.Dialect] = csv.Sniffer().sniff(text[:8192], delimiters=",;\t|")
    except csv.Error:
        dialect = csv.excel
    try:
        rows = [row for row in csv.reader(text.splitlines()[:50], dialect) if row]
    except csv.Error:
        rows = []
    if not rows:
        return "an empty table"
    columns = ", ".join(f"`{_short(column, 60)}`" for column in rows[0][:60])
    more = f" and {len(rows[0]) - 60} more" if len(rows[0]) > 60 else ""
    shown = "\n".join(_short(dialect.delimiter.join(row), 300) for row in rows[:4])
    return f"separated by {dialect.delimiter!r}, columns {columns}{more}; it begins with:\n{fenced(shown)}"


def fenced(text: str, language: str = "text") -> str:
    """Text inside a Markdown fence that the text itself cannot close, whatever it contains."""
    longest = max((len(run) for run in re.findall(r"`+", text)), default=0)
    fence = "`" * max(3, longest + 1)
    return f"{fence}{language}\n{text.rstrip()}\n{fence}"


def _short(text: str, length: int = 120) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"


def shortened(text: str, length: int) -> str:
    """Text of at most about so many characters: its beginning and its end."""
    half = length // 2
    return text if len(text) <= length else f"{text[:half]}\n… (shortened) …\n{text[-half:]}"
