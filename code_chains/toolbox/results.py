"""What a tool returned, as values that can be passed to a program."""

from __future__ import annotations

import dataclasses
import enum
import json
import reprlib
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any
from uuid import UUID

from pydantic import BaseModel, JsonValue

from code_chains.inputs import table_kind

_MAX_SUMMARY_CHARS = 200
_MAX_ARGUMENTS_CHARS = 2000
_MAX_DEPTH = 50
_brief = reprlib.Repr()
_brief.maxlist = _brief.maxdict = _brief.maxtuple = _brief.maxset = 4
_brief.maxstring = _brief.maxother = _MAX_SUMMARY_CHARS


def simplify(value: Any, depth: int = 0) -> Any:
    """Return a value with plain dicts in place of models and dataclasses, and text in place of paths and UUIDs.

    Raises:
        TypeError: It is an iterator, which has no end that is known, or nested too deeply.
    """
    if depth > _MAX_DEPTH:
        raise TypeError("values that are nested too deeply")
    if isinstance(value, BaseModel):
        value = {name: getattr(value, name) for name in type(value).model_fields}
    elif dataclasses.is_dataclass(value) and not isinstance(value, type):
        value = {field.name: getattr(value, field.name) for field in dataclasses.fields(value)}
    elif isinstance(value, enum.Enum):
        value = value.value
    if isinstance(value, PurePath | UUID):
        return str(value)
    if isinstance(value, Iterator):
        raise TypeError(f"a {type(value).__name__}; return a list")
    if isinstance(value, Mapping):
        return {simplify(key, depth + 1): simplify(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list | tuple) and type(value) in (list, tuple):
        return [simplify(item, depth + 1) for item in value]
    return value


def summarize(value: Any) -> str:
    """Describe a result in one short line, for records."""
    if kind := table_kind(value):
        return f"{kind.replace('_', ' ')} of shape {getattr(value, 'shape', None)}"
    return " ".join(_brief.repr(value).split())[:_MAX_SUMMARY_CHARS]


def shorten_arguments(arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return arguments for a record: as they are, or if they are long, the beginning of each."""
    if len(json.dumps(arguments)) <= _MAX_ARGUMENTS_CHARS:
        return dict(arguments)
    share = _MAX_ARGUMENTS_CHARS // len(arguments)
    return {name[:share]: f"{json.dumps(value)[:share]}…" for name, value in arguments.items()}
