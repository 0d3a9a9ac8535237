"""What tools return: as values for programs, and in few words for records."""

from __future__ import annotations

import json
import reprlib
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.tools import ToolException
from pydantic import BaseModel, JsonValue

from code_chains.inputs import table_kind

_MAX_SUMMARY_CHARS = 200
_MAX_ARGUMENTS_CHARS = 2000
_brief = reprlib.Repr()
_brief.maxlist = _brief.maxdict = _brief.maxtuple = _brief.maxset = 4
_brief.maxstring = _brief.maxother = _MAX_SUMMARY_CHARS


def returned_value(returned: Any) -> Any:
    """Return what a program receives: of a message with an artifact of MCP its structured content, else its text.

    MCP's servers put a value that is no object into an object with the one key `result`; it is taken out.

    Raises:
        ToolException: The message is that of a failure.
    """
    if not isinstance(returned, ToolMessage):
        return returned
    if returned.status == "error":
        raise ToolException(returned.text)
    artifact = returned.artifact if isinstance(returned.artifact, Mapping) else {}
    structured = artifact.get("structured_content")
    if isinstance(structured, Mapping):
        return structured["result"] if set(structured) == {"result"} else structured
    blocks = returned.content_blocks
    if isinstance(returned.content, str) or any(block["type"] != "text" for block in blocks):
        return returned.content
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    return texts[0] if len(texts) == 1 else texts


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
