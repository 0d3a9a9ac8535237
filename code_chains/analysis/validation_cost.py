"""How much a value may take to be read against a type: counted before a validator builds an error for each part of it.

A validator tries each member of a union at each level, so that its work doubles at each one if two members contain the
union, as the nodes of a tree do; an empty object is an error for each field that it lacks; and integers that differ by a
multiple of Python's modulus have one hash, so that a set or dict of them takes a time that is quadratic.
"""

from __future__ import annotations

import sys
from collections import Counter
from collections.abc import Iterator, Mapping
from decimal import Decimal, InvalidOperation
from typing import Any

MAX_ERRORS = 500_000
"""Errors that a value may have in its type at most; pydantic takes 0.5 KB and a microsecond for each."""
_MAX_COLLIDING = 500
_MODULUS = sys.hash_info.modulus
_MIN_DIGITS, _MAX_DIGITS = 19, 4_000
"""Characters of a text that may be read as a number as large as the modulus."""


def is_too_costly(schema: Mapping[str, Any], data: Any) -> bool:
    """Return whether data could have too many errors by a JSON schema. A union with a discriminator has one way.

    Example:
        >>> pair = {"anyOf": [{"$ref": "#/$defs/Add"}, {"$ref": "#/$defs/Mul"}, {"type": "number"}]}
        >>> tree = {"$defs": {"Add": {"properties": {"left": pair}}, "Mul": {"properties": {"left": pair}}}, **pair}
        >>> deep = 1
        >>> for _ in range(20):
        ...     deep = {"left": deep}
        >>> is_too_costly(tree, {"left": 1}), is_too_costly(tree, deep)
        (False, True)
    """
    parts = list(_parts(schema))
    fields = max((len(part.get("required") or ()) for part in parts), default=0)
    levels, errors = 0, 0
    level = [data]
    while level:  # Invariant: no recursion, as a program has made it.
        if _collide(level):
            return True
        containers = [part for part in level if isinstance(part, dict | list | tuple)]
        objects = [part for part in containers if isinstance(part, dict)]
        errors += len(level) + sum(max(fields - len(part), 0) for part in objects)
        level = [item for part in containers for item in (part.values() if isinstance(part, dict) else part)]
        levels += bool(objects)
    cyclic = _cyclic(schema)
    unions = [[str(member.get("$ref")) for member in _members(part)] for part in parts]
    errors *= max(map(len, unions), default=0) or 1
    width = max((sum(name.rpartition("/")[2] in cyclic for name in union) for union in unions), default=0)
    ways: int = max(width, 1) ** min(levels, 64)
    return errors * ways > MAX_ERRORS


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


def _members(part: Mapping[str, Any]) -> list[Mapping[str, Any]]:
    """Return the members of a union, all of which are tried."""
    members = [] if "discriminator" in part else [*(part.get("anyOf") or ()), *(part.get("oneOf") or ())]
    return [member for member in members if isinstance(member, Mapping)]


def _cyclic(schema: Mapping[str, Any]) -> set[str]:
    """Return the names of the types that contain themselves."""
    definitions = schema.get("$defs") or schema.get("definitions") or {}
    refers = {name: _references(part) for name, part in definitions.items()}
    found = set[str]()
    for name in refers:
        reached, pending = set[str](), [*refers[name]]
        while pending:
            if (other := pending.pop()) not in reached:
                reached.add(other)
                pending += refers.get(other, ())
        found |= {name} & reached
    return found


def _references(schema: Any) -> set[str]:
    """Return the names of the types to which a schema refers."""
    return {str(part["$ref"]).rpartition("/")[2] for part in _parts(schema) if "$ref" in part}


def _collide(level: list[Any]) -> bool:
    """Return whether many numbers of a level, or texts that are read as such, have one hash."""
    keys = (key for part in level if isinstance(part, dict) for key in part)
    hashes = Counter(_hash(each) for each in (*level, *keys) if _is_vast(each))
    return max(hashes.values(), default=0) > _MAX_COLLIDING


def _is_vast(value: Any) -> bool:
    if isinstance(value, str):
        return _MIN_DIGITS <= len(value) <= _MAX_DIGITS and value.strip()[:1] in frozenset("+-0123456789")
    return isinstance(value, int) and abs(value) >= _MODULUS


def _hash(value: Any) -> int:
    try:
        return hash(Decimal(value) if isinstance(value, str) else value)
    except InvalidOperation:
        return hash(value)
