"""Optional arguments that a question names, and a program does not set."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Set
from functools import lru_cache
from itertools import count, islice, repeat
from operator import attrgetter
from typing import NamedTuple

from code_chains.analysis.parsing import nodes, parse
from code_chains.analysis.work import walk

_SIGNATURE = re.compile(r"^(?:async )?(\w+)(\(.*\))(?: -> .*)?$", re.MULTILINE)
_MEMBERS = re.compile(r"^(\w+)\.\w+ = .*$", re.MULTILINE)
_MEMBER = re.compile(r"(\w+)\.(\w+) = ['\"]?([^;'\"]*)")
_WORD = re.compile(r"[^\W\d_]+")
_MAX_LINES, _MAX_LINE_CHARS = 8, 240
_MIN_WORD_LETTERS, _MIN_STEM_LETTERS = 4, 5
"""Shorter parts of a name are units and the like; words of so many letters may have endings."""


class Option(NamedTuple):
    """An argument that has a default.

    Attributes:
        position: Its position; -1 if it is only taken by name.
        member: The name of its default, if that is a member of an enumeration.
    """

    position: int
    member: str = ""


@lru_cache(maxsize=4)  # Several checks of a program read the same references.
def signatures(references: str) -> Mapping[str, Mapping[str, Option]]:
    r"""Return the options of the functions that references of a package show, by the function's name.

    Example:
        >>> signatures("from mill import grind\ngrind(corn: str, fine: bool = False, *, speed: int = 1) -> float")
        {'grind': {'fine': Option(position=1, member=''), 'speed': Option(position=-1, member='')}}
    """
    found = {}
    for name, parameters in _SIGNATURE.findall(references):
        tree = parse(f"def f{parameters}: ...")
        if tree is not None and isinstance(function := tree.body[0], ast.FunctionDef):
            found[name] = _options(function.args)
    return found


def _options(given: ast.arguments) -> dict[str, Option]:
    return {
        argument.arg: Option(position, _member(default))
        for position, argument, default in _arguments(given)
        if default is not None
    }


def _arguments(given: ast.arguments) -> Iterator[tuple[int, ast.arg, ast.expr | None]]:
    """Yield arguments with their positions, -1 for those only taken by name, and their defaults."""
    positional = [*given.posonlyargs, *given.args]
    defaults = [*repeat(None, len(positional) - len(given.defaults)), *given.defaults]
    yield from zip(count(), positional, defaults, strict=False)
    yield from zip(repeat(-1), given.kwonlyargs, given.kw_defaults, strict=False)


def _member(default: ast.expr) -> str:
    return default.attr if isinstance(default, ast.Attribute) else ""


def unset_options(query: str, code: str, references: str) -> list[str]:
    """Return what a question names and no call of a function sets, as `option=` to `function`.

    Args:
        query: The question.
        code: The program.
        references: What the model was shown of the functions.

    Example:
        >>> unset_options("Grind it fine.", "grind('rye')", "grind(corn: str, fine: bool = False)")
        ['`fine=` to `grind`']
    """
    tree, words = parse(code), set(map(str.lower, _WORD.findall(query)))
    known = signatures(references) if tree is not None else {}
    if tree is None or not known:
        return []
    calls: dict[str, list[ast.Call]] = {}
    for name, call in _calls(tree):
        calls.setdefault(name, []).append(call)
    called = sorted(known.keys() & calls.keys() - _defined(tree))
    unset = []
    for name in called:
        for option, (position, member) in known[name].items():
            is_asked = _is_named(option, words) and not _is_named(member, words)
            if is_asked and not any(_sets(call, option, position) for call in calls[name]):
                unset.append(f"`{option}=` to `{name}`")
    return unset + _unset_members(called, words, code, references)


def _unset_members(called: Iterable[str], words: Set[str], code: str, references: str) -> list[str]:
    """Return the members of enumerations that a question names, a called function takes and a program does not have."""
    named = [one for one in _members(references) if _is_named(one[1], words) or _is_named(one[2], words)]
    unset = []
    for name, parameters in _SIGNATURE.findall(references):
        for kind, member, text in named if name in called else ():
            option = re.search(rf"\b(\w+): (?:\w+ \| )?{kind}\b(?!.*? = {kind}\.{member}\b)", parameters)
            if option and not re.search(rf"\b{member}\b|['\"]{re.escape(text)}['\"]", code):
                unset.append(f"`{option[1]}={kind}.{member}` to `{name}`")
    return list(dict.fromkeys(unset))


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


def calls_any(code: str, references: str) -> bool:
    """Return whether a program calls any of the functions that references of a package show."""
    known = signatures(references)
    tree = parse(code) if known else None
    return tree is not None and any(name in known for name, _ in _calls(tree))


def _defined(tree: ast.Module) -> set[str]:
    return {node.name for node in walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def _calls(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    for node in walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            yield node.func.id if isinstance(node.func, ast.Name) else node.func.attr, node


def _sets(call: ast.Call, option: str, position: int) -> bool:
    """Return whether a call sets an option, or may do so."""
    names = set(map(attrgetter("arg"), call.keywords))
    is_starred = ast.Starred in map(type, call.args)
    return option in names or None in names or 0 <= position < len(call.args) or is_starred


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
