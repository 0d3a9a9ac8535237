"""Optional arguments that a question names, and a program does not set."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator

from code_chains.analysis.parsing import parse

__all__ = ["signatures", "unset_options"]

_SIGNATURE = re.compile(r"^(?:async )?(\w+)(\(.*\))(?: -> .*)?$", re.MULTILINE)
_WORD = re.compile(r"[^\W\d_]+")
_MIN_WORD_LETTERS, _MIN_STEM_LETTERS = 4, 5
"""Shorter parts of a name are units and the like; words of so many letters may have endings."""

_Options = dict[str, int]
"""The names of arguments that have a default, with their positions; -1 for those that are only taken by name."""


def signatures(references: str) -> dict[str, _Options]:
    r"""Return the options of the functions that references of a package show, by the function's name.

    Example:
        >>> signatures("from mill import grind\ngrind(corn: str, fine: bool = False, *, speed: int = 1) -> float")
        {'grind': {'fine': 1, 'speed': -1}}
    """
    found = {}
    for name, parameters in _SIGNATURE.findall(references):
        tree = parse(f"def f{parameters}: ...")
        if tree is not None and isinstance(function := tree.body[0], ast.FunctionDef):
            found[name] = _options(function.args)
    return found


def _options(given: ast.arguments) -> _Options:
    positional = [*given.posonlyargs, *given.args]
    first = len(positional) - len(given.defaults)
    options = {argument.arg: number for number, argument in enumerate(positional) if number >= first}
    by_name = zip(given.kwonlyargs, given.kw_defaults, strict=True)
    return options | {argument.arg: -1 for argument, default in by_name if default is not None}


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
    tree, words = parse(code), {word.lower() for word in _WORD.findall(query)}
    known = signatures(references) if tree is not None else {}
    if tree is None or not known:
        return []
    calls: dict[str, list[ast.Call]] = {}
    for name, call in _calls(tree):
        calls.setdefault(name, []).append(call)
    unset = []
    for name in known.keys() & calls.keys() - _defined(tree):
        for option, position in known[name].items():
            if _is_named(option, words) and not any(_sets(call, option, position) for call in calls[name]):
                unset.append(f"`{option}=` to `{name}`")
    return sorted(unset)


def _defined(tree: ast.Module) -> set[str]:
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef | ast.ClassDef)}


def _calls(tree: ast.Module) -> Iterator[tuple[str, ast.Call]]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name | ast.Attribute):
            yield node.func.id if isinstance(node.func, ast.Name) else node.func.attr, node


def _sets(call: ast.Call, option: str, position: int) -> bool:
    """Return whether a call sets an option, or may do so."""
    names = {keyword.arg for keyword in call.keywords}
    is_starred = any(isinstance(argument, ast.Starred) for argument in call.args)
    return option in names or None in names or 0 <= position < len(call.args) or is_starred


def _is_named(option: str, words: Iterable[str]) -> bool:
    """Return whether a question has the words of a name, apart from endings."""
    parts = [part for part in option.lower().split("_") if len(part) >= _MIN_WORD_LETTERS]
    return bool(parts) and all(any(_is_same(part, word) for word in words) for part in parts)


def _is_same(part: str, word: str) -> bool:
    shorter, longer = sorted((part, word), key=len)
    return shorter == longer or (len(shorter) >= _MIN_STEM_LETTERS and longer.startswith(shorter))
