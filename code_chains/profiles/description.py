"""Files and variables, described for a model."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

from code_chains.executors.inputs import files_on_disk, table_kind
from code_chains.executors.values import check_variables
from code_chains.inputs import fenced
from code_chains.profiles.inside.dialect import find_dialect, read_rows

_FORMATS = {
    ".xlsx",
    ".xlsm",
    ".xls",
    ".xlsb",
    ".ods",
    ".zip",
    ".gz",
    ".tar",
    ".parquet",
    ".feather",
    ".sqlite",
    ".db",
    ".duckdb",
}
"""Suffixes of what is no text and still can be read: it is not called binary where nothing has looked into it."""
_SAMPLE_BYTES, _SAMPLE_LINES = 64 * 1024, 50
"""How much of a file is read to describe it."""
_MAX_FILES, _MAX_NAMES_CHARS = 20, 1000
"""Files that are described one by one, and what is said of the others."""
Profiles = Mapping[str, Mapping[str, str]]
_NO_PROFILES: Profiles = MappingProxyType({})
_READING = "read it with:"
_ADVICE = "Read each file with exactly the lines given for it; df is then as described."
_MAX_COLUMNS, _MAX_NAME_CHARS, _MAX_ROW_CHARS, _MAX_TEXT_CHARS = 60, 60, 300, 400
_COLUMN_NAME = re.compile(r"[^\W\d][\w .()/%€$-]*")


def describe(
    files: Mapping[str, Path],
    variables: Mapping[str, Any],
    *,
    schema_only: bool = False,
    profiles: Profiles = _NO_PROFILES,
) -> str:
    """Describe files and variables for a model: sizes, columns and types; unless `schema_only`, first rows and values.

    Args:
        files: Paths by name.
        variables: Values by name.
        schema_only: Whether to leave out rows and values.
        profiles: Texts about `files` and `variables` that have been profiled, which replace ours.
    """
    return "\n".join(_descriptions(files, variables, profiles, schema_only=schema_only))


def _descriptions(
    files: Mapping[str, Path], variables: Mapping[str, Any], profiles: Profiles, *, schema_only: bool
) -> Iterator[str]:
    texts = profiles.get("files", {})
    for name in itertools.islice(files, _MAX_FILES):
        yield texts.get(name) or _describe_file(name, files[name], schema_only=schema_only)
    if others := list(files)[_MAX_FILES:]:
        names = _short(", ".join(map("`{}`".format, others)), _MAX_NAMES_CHARS)
        yield f"- {len(others)} more files in the working directory: {names}"
    texts = profiles.get("variables", {})
    for name, value in variables.items():
        yield texts.get(name) or _describe_variable(name, value, schema_only=schema_only)


def describe_inputs(values: Mapping[str, Any]) -> list[str]:
    """Describe files and variables for a model; empty if there are none."""
    variables = check_variables(values.get("variables"))
    with files_on_disk(values.get("files")) as files:
        profiles = values.get("profiles") or _NO_PROFILES
        inputs = describe(files, variables, schema_only=bool(values.get("schema_only")), profiles=profiles)
    stdin = _describe_stdin(values.get("stdin"), schema_only=bool(values.get("schema_only")))
    description = "\n".join(filter(None, [inputs, stdin, values.get("session_variables")]))
    if not description:
        return []
    lines = ["What is there:", fenced(description)]
    if _READING in "\n".join(profiles.get("files", {}).values()):
        lines.append(_ADVICE)
    return ["\n".join(lines)]


def _describe_stdin(text: str | None, *, schema_only: bool) -> str:
    if text is None:
        return ""
    head = f"- standard input, {len(text.splitlines()):,} lines"
    return head if schema_only else f"{head}; it begins with:\n{fenced(_short(text, _MAX_TEXT_CHARS))}"


def _describe_variable(name: str, value: Any, *, schema_only: bool) -> str:
    head, kind = f"- variable `{name}`", table_kind(value)
    if kind == "numpy":
        return f"{head}: NumPy array of {value.dtype}, shape {value.shape}"
    if kind and kind.endswith("_series"):
        # The name of a dtype may list categories, which are values.
        dtype = type(value.dtype).__name__ if schema_only else value.dtype
        schema = f"{head}: {kind.replace('_', ' ')} of {dtype}, {len(value)} values"
        return schema if schema_only else f"{schema}; it begins with:\n{fenced(str(value.head(3)))}"
    if kind:
        return f"{head}: {_describe_frame(value, kind, schema_only=schema_only)}"
    if not schema_only:
        with suppress(ValueError):  # Python writes no integer of more than 4,300 digits.
            return f"{head}: {type(value).__name__}, {_short(repr(value))}"
    size = f", {len(value)} items" if isinstance(value, list | dict | set) else ""
    return f"{head}: {type(value).__name__}{size}"


def _describe_frame(table: Any, kind: str, *, schema_only: bool) -> str:
    is_arrow = kind == "pyarrow"
    columns = _names(table.column_names if is_arrow else table.columns)
    schema = f"{kind} table, {table.shape[0]} rows, columns {columns}"
    if schema_only:
        return schema
    rows = table.slice(0, 3) if is_arrow else table.head(3)
    return f"{schema}; it begins with:\n{fenced(_short(str(rows), 2 * _MAX_TEXT_CHARS))}"


def _describe_file(name: str, path: Path, *, schema_only: bool) -> str:
    with path.open("rb") as file:
        text = file.read(_SAMPLE_BYTES).decode("utf-8-sig", errors="replace")
    head = f"- file `{name}` in the working directory, {path.stat().st_size:,} bytes"
    if "\0" in text:
        suffixes = {path.suffix.lower(), PurePosixPath(name).suffix.lower()}
        known = next((suffix[1:] for suffix in suffixes if suffix in _FORMATS), "")
        return f"{head}, {known} (not looked into)" if known else f"{head}, binary"
    if not {path.suffix.lower(), PurePosixPath(name).suffix.lower()}.isdisjoint({".csv", ".tsv"}):
        return f"{head}, {_describe_table(text, schema_only=schema_only)}"
    if schema_only:
        return f"{head}, text"
    return f"{head}, begins with:\n{fenced(_short(text, _MAX_TEXT_CHARS))}"


def _describe_table(text: str, *, schema_only: bool) -> str:
    text = "\n".join(text.splitlines()[:_SAMPLE_LINES])
    dialect, _ = find_dialect(text)
    delimiter = dialect.delimiter
    rows = [row.fields for row in read_rows(text, dialect)[0] if row.fields]
    if not rows:
        return "an empty table"
    header = rows[0]
    columns = f"columns {_names(header)}"
    if len(header) > _MAX_COLUMNS:
        columns += f" and {len(header) - _MAX_COLUMNS} more"
    if not schema_only:
        preview = "\n".join(_short(delimiter.join(row), _MAX_ROW_CHARS) for row in rows[:4])
        columns += f"; it begins with:\n{fenced(preview)}"
    elif not are_names(header):
        columns = f"{len(header)} columns"
    return f"separated by {delimiter!r}, {columns}"


def are_names(columns: Iterable[str]) -> bool:
    """Return whether a header consists of words, and so is hardly a row of values that was taken for one."""
    return all(map(_COLUMN_NAME.fullmatch, map(str.strip, columns)))


def _names(columns: Iterable[object]) -> str:
    """Return the names of the first columns."""
    names = map(str, itertools.islice(columns, _MAX_COLUMNS))
    return ", ".join(f"`{_short(name, _MAX_NAME_CHARS)}`" for name in names)


def _short(text: str, length: int = 120) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
