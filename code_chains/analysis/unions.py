"""How often data is read against a type that is a union of types which contain it, such as the nodes of a tree.

A validator tries each member of a union at each level of the data, so that what it takes, and the errors that it lists,
double at each level.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

MAX_WAYS = 4_096
"""Ways to read one value; pydantic takes 0.3 s and 50 MB for so many."""


def has_too_many_ways(schema: Mapping[str, Any], data: Any) -> bool:
    """Return whether data is too deep to be read against a JSON schema. A union with a discriminator has one way.

    Example:
        >>> pair = {"anyOf": [{"$ref": "#/$defs/Add"}, {"$ref": "#/$defs/Mul"}, {"type": "number"}]}
        >>> tree = {"$defs": {"Add": {"properties": {"left": pair}}, "Mul": {"properties": {"left": pair}}}, **pair}
        >>> deep = 1
        >>> for _ in range(20):
        ...     deep = {"left": deep}
        >>> has_too_many_ways(tree, {"left": 1}), has_too_many_ways(tree, deep)
        (False, True)
    """
    width = max(_widths(schema), default=1)
    return width > 1 and width ** _depth(data) > MAX_WAYS


def _widths(schema: Any) -> Iterator[int]:
    """Yield for each union how many of its members refer to a type with a name, as all do that contain themselves."""
    pending = [schema]
    while pending:
        part = pending.pop()
        if isinstance(part, Mapping):
            pending += part.values()
            if "discriminator" not in part:
                members = [*(part.get("anyOf") or ()), *(part.get("oneOf") or ())]
                yield sum("$ref" in str(member) for member in members)
        elif isinstance(part, list):
            pending += part


def _depth(data: Any) -> int:
    """Return how many levels data has. Invariant: no recursion, as a program has made it."""
    depth, level = 0, [data]
    while level:
        level = [
            item
            for part in level
            if isinstance(part, dict | list | tuple)
            for item in (part.values() if isinstance(part, dict) else part)
        ]
        depth += 1
    return depth - 1
