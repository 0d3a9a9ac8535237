"""Files and variables, described for a model."""

from __future__ import annotations

import csv
import itertools
import re
from collections.abc import Mapping
from pathlib import Path, PurePosixPath
from types import MappingProxyType
from typing import Any

from code_chains.inputs.files import files_on_disk
from code_chains.inputs.text import fenced
from code_chains.inputs.variables import check_variables, table_kind

_SAMPLE_BYTES, _SAMPLE_LINES = 64 * 1024, 50
"""How much of a file is read to describe it."""
_MAX_FILES, _MAX_NAMES_CHARS = 20, 1000
"""Files that are described one by one, and what is said of the others."""
Profiles = Mapping[str, Mapping[str, str]]
_NO_PROFILES: Profiles = MappingProxyType({})
_READING = "read it with:"
_ADVICE = "Read each file with exactly the lines given for it; df is then as described."
_MAX_COLUMNS, _MAX_NAME_CHARS, _MAX_ROW_CHARS, _MAX_TEXT_CHARS = 60, 60, 300, 400
COLUMN_NAME = re.compile(r"[^\W\d][\w .()/%€$-]*")
"""What is surely the name of a column and no value: words."""


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
    file_profiles, variable_profiles = profiles.get("files", {}), profiles.get("variables", {})
    described = dict(itertools.islice(files.items(), _MAX_FILES))
    parts = [
        file_profiles.get(name) or _describe_file(name, path, schema_only=schema_only)
        for name, path in described.items()
    ]
    if others := [name for name in files if name not in described]:
        names = _short(", ".join(f"`{name}`" for name in others), _MAX_NAMES_CHARS)
        parts.append(f"- {len(others)} more files in the working directory: {names}")
    parts += [
        variable_profiles.get(name) or _describe_variable(name, value, schema_only=schema_only)
        for name, value in variables.items()
    ]
    return "\n".join(parts)


def describe_inputs(values: Mapping[str, Any]) -> list[str]:
    """Describe files and variables for a model; empty if there are none."""
    variables = check_variables(values.get("variables"))
    with files_on_disk(values.get("files")) as files:
        profiles = values.get("profiles") or _NO_PROFILES
        inputs = describe(files, variables, schema_only=bool(values.get("schema_only")), profiles=profiles)
    description = "\n".join(filter(None, [inputs, values.get("session_variables")]))
    if not description:
        return []
    advice = [_ADVICE] if any(_READING in text for text in profiles.get("files", {}).values()) else []
    return ["\n".join([f"What is there:\n{fenced(description)}", *advice])]


def _describe_variable(name: str, value: Any, *, schema_only: bool) -> str:
    kind = table_kind(value)
    if kind == "numpy":
        return f"- variable `{name}`: NumPy array of {value.dtype}, shape {value.shape}"
    if kind and kind.endswith("_series"):
        # The name of a dtype may list categories, which are values.
        dtype = type(value.dtype).__name__ if schema_only else value.dtype
        schema = f"- variable `{name}`: {kind.replace('_', ' ')} of {dtype}, {len(value)} values"
        return schema if schema_only else f"{schema}; it begins with:\n{fenced(str(value.head(3)))}"
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
        size = f", {len(value)} items" if isinstance(value, list | dict | set) else ""
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
        is_header = all(COLUMN_NAME.fullmatch(column.strip()) for column in rows[0])
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


def _short(text: str, length: int = 120) -> str:
    return text if len(text) <= length else text[: length - 1] + "…"
