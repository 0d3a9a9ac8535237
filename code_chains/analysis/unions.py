"""How much a value may take to be read against a type: counted before a validator builds an error for each part of it.

A validator tries each member of a union at each level, so that its work doubles at each one if the members contain the
union, as the nodes of a tree do; and an empty object is an error for each field that it lacks.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

MAX_ERRORS = 500_000
"""Errors that a value may have in its type at most; pydantic takes 0.5 KB and a microsecond for each."""


def is_too_much_to_read(schema: Mapping[str, Any], data: Any) -> bool:
    """Return whether data could have too many errors by a JSON schema. A union with a discriminator has one way.

    Example:
        >>> pair = {"anyOf": [{"$ref": "#/$defs/Add"}, {"$ref": "#/$defs/Mul"}, {"type": "number"}]}
        >>> tree = {"$defs": {"Add": {"properties": {"left": pair}}, "Mul": {"properties": {"left": pair}}}, **pair}
        >>> deep = 1
        >>> for _ in range(20):
        ...     deep = {"left": deep}
        >>> is_too_much_to_read(tree, {"left": 1}), is_too_much_to_read(tree, deep)
        (False, True)
    """
    parts = list(_parts(schema))
    fields = max((len(part.get("required") or ()) for part in parts), default=0)
    width = max(map(_width, parts), default=0)
    levels, errors = 0, 0
    level = [data]
    while level:  # Invariant: no recursion, as a program has made it.
        containers = [part for part in level if isinstance(part, dict | list | tuple)]
        errors += len(level) + sum(
            max(fields - len(part), 0) for part in containers if isinstance(part, dict)
        )
        level = [item for part in containers for item in (part.values() if isinstance(part, dict) else part)]
        levels += bool(level)
    if width > 1:
        errors *= width ** min(levels, _nesting(schema), 64)
    return errors > MAX_ERRORS


def _parts(schema: Any) -> Iterator[Mapping[str, Any]]:
    """Yield a schema and all within it."""
    pending = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, Mapping):
            yield part
            pending += part.values()
        elif isinstance(part, list):
            pending += part


def _members(part: Mapping[str, Any]) -> list[Any]:
    """Return the members of a union, all of which are tried."""
    return [] if "discriminator" in part else [*(part.get("anyOf") or ()), *(part.get("oneOf") or ())]


def _width(part: Mapping[str, Any]) -> int:
    """Return how many members of a union refer to a type with a name."""
    return sum("$ref" in str(member) for member in _members(part))


def _nesting(schema: Mapping[str, Any]) -> int:
    """Return how many unions stand within each other; as good as endless, if one contains itself."""
    definitions = schema.get("$defs") or schema.get("definitions") or {}
    own = {key: part for key, part in schema.items() if key not in ("$defs", "definitions")}
    refers = {name: _references(part) for name, part in definitions.items()}
    for name in refers:
        reached, pending = set[str](), [*refers[name]]
        while pending:
            if (other := pending.pop()) not in reached:
                reached.add(other)
                pending += refers.get(other, ())
        if name in reached:
            return 1 << 30
    return sum(_width(part) > 1 for part in _parts([own, *definitions.values()]))


def _references(schema: Any) -> set[str]:
    """Return the names of the types to which a schema refers."""
    return {str(part["$ref"]).rpartition("/")[2] for part in _parts(schema) if "$ref" in part}
