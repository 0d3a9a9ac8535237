"""Read the program in a tool call that a model wrote as text."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator
from contextlib import suppress
from typing import Any

from code_chains.analysis.replies.syntax import Syntax, computes

_START = re.compile(r"""\{\s*["'\d]|\[\s*[{"']""")
_PYTHON_TOOL = re.compile(r"python|code|exec|repl|interpreter|jupyter|\brun", re.IGNORECASE)
_OTHER_TOOL = re.compile(r"bash|shell|sql|search|final|command|javascript", re.IGNORECASE)
_NAMES = ("name", "tool", "tool_name", "action", "recipient_name")
_WRAPPERS = (
    "tool_calls",
    "function_call",
    "function",
    "arguments",
    "parameters",
    "tool_input",
    "action_input",
    "input",
    "args",
)
_CODE = ("code", "python", "python_code", "query", "source")
_SUFFIXES = ("}", "}}", "}]", "}}]")
_MAX_STARTS, _MAX_DEPTH, _MAX_CHARS = 20, 6, 100_000


def calls_in(text: str) -> Iterator[str]:
    """Yield the code of each tool call, outermost first, that stands in text as JSON or as a literal of Python."""
    yield from filter(None, map(code_in_call, values_in(text)))


def values_in(text: str) -> Iterator[Any]:
    """Yield the objects and lists, outermost first, that stand in text as JSON or as literals of Python."""
    end = count = 0
    for start in _START.finditer(text):
        if start.start() < end:
            continue
        count += 1
        if count > _MAX_STARTS:
            return
        value, end = _decode(text, start.start())
        yield value


def _decode(text: str, start: int) -> tuple[Any, int]:
    """Return the value that begins somewhere in text, and where it ends; None if it cannot be read."""
    with suppress(ValueError, RecursionError):
        return json.JSONDecoder(strict=False).raw_decode(text, start)
    rest = text[start : start + _MAX_CHARS].strip()
    end = rest.rfind("]" if rest[0] == "[" else "}") + 1
    for candidate in (rest[:end], *map(rest.__add__, _SUFFIXES)):
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            return json.loads(candidate, strict=False), len(text)
        with suppress(ValueError, SyntaxError, RecursionError, MemoryError):
            return ast.literal_eval(candidate), len(text)
    return None, start + 1


def code_in_call(value: Any, depth: int = 0) -> str:
    """Return the code in a decoded tool call, message or notebook; an empty string if it calls something else."""
    if depth > _MAX_DEPTH:
        return ""
    if isinstance(value, str):
        return _in_string(value, depth)
    if isinstance(value, list):
        programs = (code_in_call(item, depth + 1) for item in value if isinstance(item, dict))
        return "\n".join(filter(None, programs))
    return _in_mapping(value, depth) if isinstance(value, dict) else ""


def _in_string(value: str, depth: int) -> str:
    """Return a string as it is unless it is JSON itself, as arguments of a call are."""
    if value.lstrip().startswith(("{", "[")):
        with suppress(ValueError, RecursionError):
            return code_in_call(json.loads(value, strict=False), depth + 1)
    return value


def _in_mapping(value: dict[Any, Any], depth: int) -> str:
    if isinstance(value.get("cells"), list):
        return _in_notebook(value["cells"])
    name = next((value[key] for key in _NAMES if isinstance(value.get(key), str)), "")
    if name and (_OTHER_TOOL.search(name) or not _PYTHON_TOOL.search(name)):
        return ""
    for key in _WRAPPERS:
        if (
            key in value
            and (name or not isinstance(value[key], str))
            and (code := code_in_call(value[key], depth + 1))
        ):
            return code
    for key in _CODE:
        if isinstance(value.get(key), str | list) and (code := _lines(value[key])):
            return code
    texts = [text for text in value.values() if isinstance(text, str)]
    programs = [text for text in texts if "```" in text or _is_program(text)]
    return programs[0] if len(programs) == 1 else ""


def _is_program(text: str) -> bool:
    return Syntax().is_program(text) and computes(text)


def _in_notebook(cells: list[Any]) -> str:
    sources = []
    for cell in cells:
        if isinstance(cell, dict) and cell.get("cell_type") == "code":
            source = cell.get("source", "")
            sources.append("".join(source) if isinstance(source, list) else str(source))
    return "\n".join(sources)


def _lines(value: str | list[Any]) -> str:
    if isinstance(value, str):
        return value
    return "\n".join(line.rstrip("\n") for line in value if isinstance(line, str))
