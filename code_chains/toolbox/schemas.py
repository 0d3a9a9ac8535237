"""From a JSON schema to the notation of a Python type, which a model and `help()` show."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

_MAX_DEPTH = 8
"""Levels of nesting and references; recursive schemas end here."""
_MAX_CHARS = 400
_MAX_FIELDS = 20
_MAX_CHOICES = 20
_PLAIN = {"integer": "int", "number": "float", "boolean": "bool", "null": "None", "string": "str"}
_FORMATS = {"date": "date", "date-time": "datetime", "time": "time", "binary": "bytes"}


def type_of_schema(schema: Any, definitions: Mapping[str, Any] | None = None, depth: int = 0) -> str:
    """Return a JSON schema in the notation of Python: `list[int]`, `{"id": int}`, `Literal['a', 'b'] | None`.

    Args:
        schema: The schema; anything that is none, or says nothing, is `Any`.
        definitions: What `$ref` refers to, by name.
        depth: Levels of objects above it.

    Example:
        >>> type_of_schema({"type": "array", "items": {"type": "integer"}})
        'list[int]'
    """
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        return "Any"
    known = {**(definitions or {}), **schema.get("$defs", {})}
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return type_of_schema(known.get(name), known, depth + 1)
    for key, render in _RENDERERS.items():
        if key in schema:
            return render(schema, known, depth)
    return "Any"


def short_type(schema: Any, definitions: Mapping[str, Any] | None = None) -> str:
    """Return what `type_of_schema` does, or `Any` if that is long, as it is for models that refer to each other."""
    rendered = type_of_schema(schema, definitions)
    return rendered if len(rendered) <= _MAX_CHARS else "Any"


def _choices(schema: Mapping[str, Any], known: Mapping[str, Any], depth: int) -> str:
    values = list(schema["enum"]) if "enum" in schema else [schema["const"]]
    listed = ", ".join(map(repr, values[:_MAX_CHOICES]))
    return f"Literal[{listed}{', …' if len(values) > _MAX_CHOICES else ''}]"


def _union(schema: Mapping[str, Any], known: Mapping[str, Any], depth: int) -> str:
    options = [
        type_of_schema(option, known, depth) for option in schema.get("anyOf") or schema.get("oneOf") or ()
    ]
    return " | ".join(dict.fromkeys(options)) or "Any"


def _all_of(schema: Mapping[str, Any], known: Mapping[str, Any], depth: int) -> str:
    parts = schema["allOf"]
    return type_of_schema(parts[0], known, depth) if len(parts) == 1 else "dict"


def _named(schema: Mapping[str, Any], known: Mapping[str, Any], depth: int) -> str:
    kind = schema["type"]
    if isinstance(kind, list):
        options = [type_of_schema({**schema, "type": option}, known, depth) for option in kind]
        return " | ".join(dict.fromkeys(options))
    if kind == "array":
        return _array(schema, known, depth)
    if kind == "object":
        return _object(schema, known, depth)
    if kind == "string":
        return _FORMATS.get(str(schema.get("format")), "str")
    return _PLAIN.get(str(kind), "Any")


def _array(schema: Mapping[str, Any], known: Mapping[str, Any], depth: int) -> str:
    if "prefixItems" in schema:
        items = ", ".join(type_of_schema(item, known, depth + 1) for item in schema["prefixItems"])
        return f"tuple[{items}]"
    item = type_of_schema(schema.get("items"), known, depth + 1)
    name = "set" if schema.get("uniqueItems") else "list"
    return name if item == "Any" else f"{name}[{item}]"


def _object(schema: Mapping[str, Any], known: Mapping[str, Any], depth: int) -> str:
    properties = schema.get("properties") or {}
    if not properties:
        value = type_of_schema(schema.get("additionalProperties"), known, depth + 1)
        return "dict" if value == "Any" else f"dict[str, {value}]"
    fields = [
        f"{name!r}: {type_of_schema(field, known, depth + 1)}"
        for name, field in list(properties.items())[:_MAX_FIELDS]
    ]
    return f"{{{', '.join(fields)}{', …' if len(properties) > _MAX_FIELDS else ''}}}"


_RENDERERS: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any], int], str]] = {
    "enum": _choices,
    "const": _choices,
    "anyOf": _union,
    "oneOf": _union,
    "allOf": _all_of,
    "type": _named,
}
"""The keyword that decides how a schema is rendered: the first one that it has."""
