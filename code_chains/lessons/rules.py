"""Rules on the source of a learner's program, as checks of `ValidateChain`."""

from __future__ import annotations

import ast
import keyword
from collections.abc import Mapping
from typing import Any

from code_chains.analysis.checks import Check, imports_only, no_calls, shorter_than
from code_chains.analysis.parsing import holds, names_in, nodes, parse
from code_chains.errors import InputError, brief
from code_chains.lessons.expected import read_points
from code_chains.lessons.texts import Texts, texts_in
from code_chains.records import Problem
from code_chains.storage.foreign_yaml import parse_yaml

_LOOPS: tuple[type[ast.AST], ...] = (ast.For, ast.While)
REQUIRED: Mapping[str, tuple[type[ast.AST], ...]] = {
    "for": (ast.For,),
    "while": (ast.While,),
    "loop": _LOOPS,
    "if": (ast.If, ast.IfExp),
    "function": (ast.FunctionDef, ast.AsyncFunctionDef),
    "return": (ast.Return,),
    "class": (ast.ClassDef,),
    "comprehension": (ast.ListComp, ast.SetComp, ast.DictComp, ast.GeneratorExp),
}
"""What `require:` may name, with the parts of a program that are meant."""


def read_rules(source: str, language: str) -> tuple[tuple[Check, ...], float | None]:
    """Read a block of rules in YAML: `forbid`, `require`, `imports` and `lines`; and `points`, what the step is worth.

    Raises:
        InputError: A key or a value is unknown.
    """
    try:
        given, _ = parse_yaml(source)
    except ValueError as error:
        raise InputError(f"the rules are not YAML: {error}") from error
    if not isinstance(given, dict):
        raise InputError("rules are lines such as `forbid: [sum]` and `require: [for]`")
    worth = read_points(given.pop("points")) if "points" in given else None
    texts = texts_in(language)
    return tuple(check for key, value in given.items() for check in _read(str(key), value, texts)), worth


def _read(key: str, value: Any, texts: Texts) -> list[Check]:
    if key == "lines":
        return [shorter_than(value)]
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InputError(f"{key} must be a list, such as [sum, sorted], not {brief(value)}")
    if key == "forbid":
        return [_forbids(*value, texts=texts)]
    if key == "imports":
        return [imports_only(*value)]
    if key == "require":
        if unknown := [name for name in value if name not in (*REQUIRED, "recursion")]:
            raise InputError(f"{brief(unknown[0])} cannot be required: {', '.join([*REQUIRED, 'recursion'])}")
        return [_requires(name, texts) for name in value]
    raise InputError(f"unknown rule {brief(key)}; rules: forbid, require, imports, lines, points")


def _forbids(*names: str, texts: Texts) -> Check:
    """Make a check that refuses functions, and kinds of statements such as `while`."""
    kinds = [name for name in names if name in REQUIRED]
    calls = [name for name in names if name not in REQUIRED]
    refuse_calls = no_calls(*calls) if calls else None

    def check(code: str) -> list[Problem]:
        found = list(refuse_calls(code)) if refuse_calls else []
        used = [name for name in kinds if _has(code, name)]
        return found + [
            Problem("forbidden", texts.forbidden.format(what=_called(name, texts))) for name in used
        ]

    return check


def _requires(name: str, texts: Texts) -> Check:
    def check(code: str) -> list[Problem]:
        missing = texts.required.format(what=_called(name, texts))
        return [] if _has(code, name) else [Problem("required", missing)]

    return check


def _has(code: str, name: str) -> bool:
    tree = parse(code)
    if tree is None:  # Another check reports it.
        return True
    return _is_recursive(tree) if name == "recursion" else any(holds(tree, kind) for kind in REQUIRED[name])


def _called(name: str, texts: Texts) -> str:
    """Return what a learner reads of a name of a rule: a keyword of Python's, or a word."""
    return f"`{name}`" if keyword.iskeyword(name) else str(getattr(texts, name))


def _is_recursive(tree: ast.Module) -> bool:
    """Return whether a function calls itself, also by way of others, as a method, or as a lambda with a name."""
    used: dict[str, set[str]] = {}
    for node in nodes(tree, ast.FunctionDef):
        used.setdefault(node.name, set()).update(_used(node))
    for assigned in nodes(tree, ast.Assign):
        if isinstance(assigned.value, ast.Lambda):
            for target in assigned.targets:
                used.setdefault(getattr(target, "id", ""), set()).update(_used(assigned.value))
    return any(name in _reached(name, used) for name in used)


def _used(node: ast.AST) -> set[str]:
    return names_in(node) | {attribute.attr for attribute in nodes(node, ast.Attribute)}


def _reached(name: str, used: Mapping[str, set[str]]) -> set[str]:
    """Return the names that a function uses, itself or by way of others."""
    reached, new = set[str](), {name}
    while new:
        new = {other for one in new for other in used.get(one, ())} - reached
        reached |= new
    return reached
