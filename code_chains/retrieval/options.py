"""Optional arguments of functions that a question may mean, by its words."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from itertools import count, islice, repeat
from typing import NamedTuple

from code_chains.analysis.parsing import nodes, parse

_SIGNATURE = re.compile(r"^(?:async )?(\w+)(\(.*\))(?: -> .*)?$", re.MULTILINE)
_MEMBERS = re.compile(r"^(\w+)\.\w+ = .*$", re.MULTILINE)
_MEMBER = re.compile(r"(?<!\w)(\w++)\.(\w++) = ['\"]?([^;'\"]*)")
_WORD = re.compile(r"[^\W\d_]+")
_MAX_LINES, _MAX_LINE_CHARS = 8, 240
_MIN_WORD_LETTERS, _MIN_STEM_LETTERS = 4, 5
"""Shorter parts of a name are units and the like; words of so many letters may have endings."""


def _arguments(given: ast.arguments) -> Iterator[tuple[int, ast.arg, ast.expr | None]]:
    """Yield arguments with their positions, -1 for those only taken by name, and their defaults."""
    positional = [*given.posonlyargs, *given.args]
    defaults = [*repeat(None, len(positional) - len(given.defaults)), *given.defaults]
    yield from zip(count(), positional, defaults, strict=False)
    yield from zip(repeat(-1), given.kwonlyargs, given.kw_defaults, strict=False)


def _members(references: str) -> Iterator[tuple[str, str, str]]:
    """Yield the enumerations, members and values that references show."""
    for line in _MEMBERS.finditer(references):
        yield from _MEMBER.findall(line[0])


class _Choice(NamedTuple):
    """An argument with a default or a set of values: as it is shown, the words for it, and what is said of it."""

    function: str
    name: str
    shown: str
    words: list[str]
    about: str


def named_options(query: str, references: str) -> list[str]:
    r"""Return the options that words of a question may mean: their names, their values, or what is said of them alone.

    Args:
        query: The question.
        references: What the model is shown of the functions.

    Example:
        >>> named_options("For export?", "grade(lot: str, strict: bool = False)\n        strict: For export.")
        ['strict: bool (default False), of grade: For export.']
    """
    words = set(map(str.lower, _WORD.findall(query)))
    choices = list(_choices(references))
    said, own = Counter(_stems(references)), Counter[tuple[str, str]]()
    own.update((choice.name, stem) for choice in choices for stem in _stems(choice.about))
    functions: dict[tuple[str, str], list[str]] = {}
    for choice in choices:
        # Invariant: what is said elsewhere, too, tells no option from another one.
        telling = [stem for stem in _stems(choice.about) if said[stem] == own[choice.name, stem]]
        if any(_is_named(name, words) for name in (choice.name, *choice.words, *telling)):
            functions.setdefault((choice.shown, choice.about), []).append(choice.function)
    lines = (f"{shown}, of {', '.join(names)}: {about}" for (shown, about), names in functions.items())
    return [line.removesuffix(": ")[:_MAX_LINE_CHARS] for line in islice(lines, _MAX_LINES)]


def _choices(references: str) -> Iterator[_Choice]:
    members: dict[str, list[tuple[str, str]]] = {}
    for kind, name, value in _members(references):
        members.setdefault(kind, []).append((f"{kind}.{name}", value))
    for block in references.split("\n\n"):
        for function, parameters in _SIGNATURE.findall(block):
            tree = parse(f"def f{parameters}: ...")
            given = tree.body[0] if tree is not None else None
            for _, argument, default in _arguments(given.args) if isinstance(given, ast.FunctionDef) else ():
                values, words = _values(argument.annotation, members)
                if default is not None or words:
                    shown = f"{argument.arg}{values}{f' (default {ast.unparse(default)})' if default else ''}"
                    yield _Choice(function, argument.arg, shown, words, _about(argument.arg, block))


def _values(kind: ast.expr | None, members: Mapping[str, list[tuple[str, str]]]) -> tuple[str, list[str]]:
    """Return what an argument may be, as a suffix of its name, and the words for that: members of enumerations, literals."""
    text = ast.unparse(kind) if kind else ""
    enums = [member for name in re.findall(r"\w+", text) for member in members.get(name, ())]
    literals = [node.value for node in nodes(kind, ast.Constant)] if kind and "Literal" in text else []
    shown = " | ".join([*(name for name, _ in enums), *map(repr, literals)]) or text
    words = [word for name, value in enums for word in (name.rpartition(".")[2], value)]
    return f": {shown}" if shown else "", [*words, *map(str, literals)]


def _about(argument: str, block: str) -> str:
    """Return what the documentation says of an argument."""
    pattern = rf"^([ ]+)(?::param )?{argument}\b[^:\n]*:[ ]*(.*(?:\n\1[ ]+.*)*)"
    found = re.search(pattern, block, re.MULTILINE)
    return " ".join(found[2].split()) if found else ""


def _stems(text: str) -> list[str]:
    words = map(str.lower, _WORD.findall(text))
    return [word.rstrip("s") for word in words if len(word) >= _MIN_STEM_LETTERS]


def _is_named(option: str, words: Iterable[str]) -> bool:
    """Return whether a question has the words of a name, apart from endings."""
    parts = [part for part in option.lower().split("_") if len(part) >= _MIN_WORD_LETTERS]
    for part in parts:
        if not any(_is_same(part, word) for word in words):
            return False
    return bool(parts)


def _is_same(part: str, word: str) -> bool:
    shorter, longer = sorted((part, word), key=len)
    return shorter == longer or (len(shorter) >= _MIN_STEM_LETTERS and longer.startswith(shorter))
