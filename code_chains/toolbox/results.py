"""Calls of tools in few words, for records."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Mapping
from typing import Any

from pydantic import BaseModel, JsonValue

from code_chains.inputs import table_kind

_MAX_SUMMARY_CHARS = 200
_MAX_ARGUMENTS_CHARS = 2000
_brief = reprlib.Repr()
_brief.maxlist = _brief.maxdict = _brief.maxtuple = _brief.maxset = 4
_brief.maxstring = _brief.maxother = _MAX_SUMMARY_CHARS


def summarize(value: Any) -> str:
    """Describe a result in one short line, for records."""
    if kind := table_kind(value):
        return f"{kind.replace('_', ' ')} of shape {getattr(value, 'shape', None)}"
    if isinstance(value, list):
        value = [dict(item) if isinstance(item, BaseModel) else item for item in value[: _brief.maxlist + 1]]
    return " ".join(_brief.repr(value).split())[:_MAX_SUMMARY_CHARS]


def shorten_arguments(arguments: Mapping[str, JsonValue]) -> dict[str, JsonValue]:
    """Return arguments for a record: as they are, or if they are long, the beginning of each."""
    if len(json.dumps(arguments)) <= _MAX_ARGUMENTS_CHARS:
        return dict(arguments)
    share = _MAX_ARGUMENTS_CHARS // len(arguments)
    return {name[:share]: f"{json.dumps(value)[:share]}…" for name, value in arguments.items()}
