"""What exported programs need: the files beside the export, and assignments of the variables that they were given."""

from __future__ import annotations

import datetime
import decimal
import filecmp
import os
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from importlib import import_module
from io import BytesIO
from math import isfinite
from pathlib import Path
from typing import Any

from code_chains.conversations.replay import Inputs
from code_chains.conversations.turns import Turns
from code_chains.errors import InputError
from code_chains.executors.inputs import check_name, table_kind
from code_chains.executors.values import check_variables
from code_chains.records.filenames import numbered_names
from code_chains.state import Turn
from code_chains.storage import foreign

_TABLES = ("pandas", "polars")
_BRACKETS: dict[type, str] = {list: "[{}]", tuple: "({},)", set: "{{{}}}", frozenset: "frozenset([{}])"}


@dataclass
class Companions:
    """The files beside an export.

    Attributes:
        target: The export; None if no files are written, so that all names are available.
        files: Paths or contents by name.
    """

    target: Path | None = None
    files: dict[str, Path | bytes] = field(default_factory=dict)

    def add(self, preferred: str, data: bytes) -> str:
        """Add a content under a name that nothing else has, and return the name."""
        name = next(name for name in numbered_names(preferred) if self._is_free(name, data))
        self.files.setdefault(name, data)
        return name

    def _is_free(self, name: str, data: bytes) -> bool:
        if name in self.files:
            return is_same(self.files[name], data)
        path = self.target.parent / name if self.target else None
        return path is None or (
            path != self.target and (not os.path.lexists(path) or has_content(path, data))
        )


def has_program(turn: Turn) -> bool:
    """Return whether a turn has a program that ran."""
    return bool(turn.code.strip()) and turn.status != "failed"


def with_inputs(turns: Sequence[Turn], companions: Companions) -> list[Turn]:
    """Return turns whose programs begin with what they were given and a comment on what is missing; add their files.

    Raises:
        InputError: Another file has the name of an input file already, or it is the export target.
    """
    load = turns.inputs if isinstance(turns, Turns) else _from_paths
    inputs = {place: load(turn) for place, turn in enumerate(turns) if has_program(turn)}
    lines = {place: list(_missing_files(turns[place], found, companions)) for place, found in inputs.items()}
    prepared = list(turns)
    for place, found in inputs.items():
        turn = turns[place]
        given = "".join([*lines[place], *_assignments(turn, found, companions)])
        prepared[place] = replace(turn, code=f"{given}\n{turn.code.strip()}" if given else turn.code)
    return prepared


def _from_paths(turn: Turn) -> Inputs:
    """Return what a turn itself knows, which comes from no store: the files that still exist."""
    files = {name: Path(path) for name, path in turn.files.items() if os.path.isfile(path)}
    return Inputs(dict(files), dict(turn.variables))


# -- files ---------------------------------------------------------------------------------------------------


def _missing_files(turn: Turn, inputs: Inputs, companions: Companions) -> Iterator[str]:
    """Add the input files of a program, and yield comments on those that are not there."""
    for name in map(check_name, turn.files):
        # Invariant: the path in a stored turn counts nothing, as others may have written it.
        source = inputs.files.get(name)
        if source is None:
            yield f"# The file {name!r} was given, and is not there any more: put it beside this program.\n"
        elif not _add_file(name, source, companions):
            yield f"# The file {name!r} had another content here: replace it before this program runs.\n"


def _add_file(name: str, source: Path | bytes, companions: Companions) -> bool:
    """Add an input file; return whether it is the only one of its name."""
    target, is_path = companions.target, isinstance(source, Path)
    copy = (target or Path()).parent / name
    if copy == target or (is_path and target is not None and target.exists() and source.samefile(target)):  # type: ignore[union-attr]
        raise InputError(f"{str(target)!r} is a file that a program read. Choose another name to export to.")
    other = companions.files.setdefault(name, source)
    is_same_file = is_same(other, source)
    if not is_same_file and not (is_path and isinstance(other, Path)):
        return False  # The same name for each upload is usual, and asks for no path of anybody.
    if not is_same_file or (os.path.lexists(copy) and not has_content(copy, source)):
        what = repr(str(source)) if is_path else "an uploaded file"
        raise InputError(f"{str(copy)!r} is needed for a copy of {what}, but is another file. Move it away.")
    return True


def is_same(one: Path | bytes, other: Path | bytes) -> bool:
    """Return whether two files, by path or content, have the same content."""
    if isinstance(one, bytes):
        one, other = other, one
    return one == other if isinstance(one, bytes) else has_content(one, other)


def has_content(path: Path, content: Path | bytes) -> bool:
    """Return whether a file has this content, or is the same file."""
    if not path.is_file():
        return False
    if isinstance(content, bytes):
        return foreign.has_content(path.resolve(), content)
    return path.samefile(content) or filecmp.cmp(path, content, shallow=False)


# -- variables -----------------------------------------------------------------------------------------------


def _assignments(turn: Turn, inputs: Inputs, companions: Companions) -> Iterator[str]:
    """Yield assignments of the variables that are not JSON, and comments on those that are not there."""
    check_variables(dict.fromkeys(inputs.variables))  # Names come from the store, and become source.
    for name, value in inputs.variables.items():
        if name not in turn.variables:
            assignment = _of_table(name, value, companions) or _of_value(name, value)
            yield assignment or _missing_variable(name, _described(value))
    for name in sorted(inputs.missing - turn.files.keys()):
        yield _missing_variable(name, "too large to be kept")


def _missing_variable(name: str, about: str) -> str:
    return f"# {name!r}, {about}, was given by the application: assign it here.\n"


def _described(value: Any) -> str:
    columns = list(map(str, getattr(value, "columns", ())))
    kind = type(value).__name__
    return f"{kind} with the columns {', '.join(columns)[:200]!r}" if columns else kind


def _of_table(name: str, table: Any, companions: Companions) -> str:
    """Return what reads a frame from a file that is added; empty for anything else, and if it would not be the same."""
    kind = table_kind(table) or ""
    if kind not in _TABLES:
        return ""
    buffer = BytesIO()
    with suppress(Exception):  # Parquet refuses some columns, each library with exceptions of its own.
        (table.to_parquet if kind == "pandas" else table.write_parquet)(buffer)
        buffer.seek(0)
        if import_module(kind).read_parquet(buffer).equals(table):
            file = companions.add(f"{name}.parquet", buffer.getvalue())
            return f"import {kind} as _{kind}\n\n{name} = _{kind}.read_parquet({file!r})\n"
    return ""


def _of_value(name: str, value: Any) -> str:
    """Return the assignment of a value; empty if it has no literal."""
    try:
        source = literal(value)
    except (TypeError, ValueError, RecursionError):  # A long number has no text.
        return ""
    modules = [module for module in ("datetime", "decimal") if f"_{module}." in source]
    imports = "".join(f"import {module} as _{module}\n" for module in modules)
    return f"{imports}{name} = {source}\n"


def literal(value: Any) -> str:
    """Return a value as Python source, in which `_datetime` and `_decimal` are the modules.

    Raises:
        TypeError: It has none.
    """
    kind: type = type(value)
    if kind is dict:
        return f"{{{', '.join(f'{literal(key)}: {literal(item)}' for key, item in value.items())}}}"
    if kind in _BRACKETS and (value or kind is list):
        return _BRACKETS[kind].format(", ".join(map(literal, value)))
    if kind is float and not isfinite(value):
        return f'float("{value}")'
    if kind in (tuple, set, frozenset, int, float, bool, str, bytes, type(None)):
        return repr(value)
    return _moment(value)


def _moment(value: Any) -> str:
    kind = type(value)
    if kind in (datetime.date, datetime.time, datetime.datetime) and not getattr(value, "tzinfo", None):
        return f"_datetime.{kind.__name__}.fromisoformat({value.isoformat()!r})"
    if kind is datetime.timedelta:
        return f"_datetime.timedelta({value.days}, {value.seconds}, {value.microseconds})"
    if kind is decimal.Decimal:
        return f"_decimal.Decimal({str(value)!r})"
    raise TypeError(f"{kind.__name__} has no literal")
