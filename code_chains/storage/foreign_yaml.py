"""YAML that others may have written: counted before anything is built of it, and without aliases."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterator
from typing import Any

import yaml

from code_chains.errors import brief

MAX_ITEMS, MAX_DEPTH = 20_000, 50
_MAX_SAID_CHARS, _MAX_DIGITS = 200, 1_000
_NUMBER = re.compile(r"[-+\d:._xa-fA-F]+")


class YamlError(ValueError):
    """Text is not the YAML that is read here.

    Attributes:
        line: Where, from 0.
    """

    def __init__(self, problem: str, line: int) -> None:
        super().__init__(problem)
        self.line = line


def parse_yaml(text: str) -> tuple[Any, dict[Any, int]]:
    """Parse YAML that others may have written, and return it with the lines of its keys, from 0.

    Raises:
        ValueError: It is not YAML, uses aliases, is nested too deeply, or holds too many items. The message says where.
    """
    loader: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
    try:
        _check_events(yaml.parse(text, loader))
        parser = loader(text)
        try:
            root = parser.get_single_node()
            value = parser.construct_document(root) if root else None
        finally:
            parser.dispose()
    except YamlError:
        raise
    except yaml.YAMLError as error:
        mark = getattr(error, "problem_mark", None) or getattr(error, "context_mark", None)
        said = " ".join(str(getattr(error, "problem", None) or error).split())
        raise YamlError(said, mark.line if mark else 0) from error
    except (ValueError, OverflowError, TypeError, RecursionError) as error:  # Of a number, a date, a key.
        raise YamlError(f"a value cannot be read: {str(error)[:_MAX_SAID_CHARS]}", 0) from error
    lines = [_lines_of_keys(node) for node in _mappings(root)]
    return value, lines[0] if isinstance(root, yaml.MappingNode) else {}


def _mappings(node: Any) -> Iterator[Any]:
    """Yield the objects in what a parser made, the outermost first."""
    children = node.value if node is not None and not isinstance(node.value, str) else ()
    if isinstance(node, yaml.MappingNode):
        yield node
        children = itertools.chain.from_iterable(children)
    for child in children:
        yield from _mappings(child)


def _lines_of_keys(mapping: Any) -> dict[Any, int]:
    lines: dict[Any, int] = {}
    for key, _ in mapping.value:
        name = key.value if isinstance(key.value, str) else id(key)
        if name in lines:
            raise YamlError(f"the key {brief(name)} comes twice", key.start_mark.line)
        lines[name] = key.start_mark.line
    return lines


def _check_events(events: Iterator[Any]) -> None:
    """Count what a parser finds before anything is built of it."""
    depth = 0
    for count, event in enumerate(events):
        depth += isinstance(event, yaml.CollectionStartEvent) - isinstance(event, yaml.CollectionEndEvent)
        line = event.start_mark.line if event.start_mark else 0
        # Invariant: an alias costs nothing as text, and a list of aliases of lists any amount of memory.
        if isinstance(event, yaml.AliasEvent) or getattr(event, "anchor", None):
            raise YamlError("aliases and anchors (`*name`, `&name`) are not read: write the value out", line)
        # Invariant: a number is built in time that grows with the square of its length.
        if (
            isinstance(event, yaml.ScalarEvent)
            and len(event.value) > _MAX_DIGITS
            and _NUMBER.fullmatch(event.value)
        ):
            raise YamlError(f"a number has more than {_MAX_DIGITS:,} digits", line)
        if depth > MAX_DEPTH or count > MAX_ITEMS:
            raise YamlError("it is nested too deeply, or has too many items", line)
