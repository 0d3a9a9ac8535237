"""Rules on the source of a learner's program, as checks of `ValidateChain`."""

from __future__ import annotations

import ast
from collections.abc import Mapping
from typing import Any

from code_chains.analysis.checks import Check, imports_only, no_calls, shorter_than
from code_chains.analysis.parsing import holds, names_in, nodes, parse
from code_chains.errors import InputError, brief
from code_chains.lessons.expected import read_points
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


def read_rules(source: str) -> tuple[tuple[Check, ...], float | None]:
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
    return tuple(check for key, value in given.items() for check in _read(str(key), value)), worth


def _read(key: str, value: Any) -> list[Check]:
    if key == "lines":
        return [shorter_than(value)]
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        raise InputError(f"{key} must be a list, such as [sum, sorted], not {brief(value)}")
    if key == "forbid":
        return [_forbids(*value)]
    if key == "imports":
        return [imports_only(*value)]
    if key == "require":
        if unknown := [name for name in value if name not in (*REQUIRED, "recursion")]:
            raise InputError(f"{brief(unknown[0])} cannot be required: {', '.join([*REQUIRED, 'recursion'])}")
        return list(map(_requires, value))
    raise InputError(f"unknown rule {brief(key)}; rules: forbid, require, imports, lines, points")


def _forbids(*names: str) -> Check:
    """Make a check that refuses functions, and kinds of statements such as `while`."""
    kinds = [name for name in names if name in REQUIRED]
    calls = [name for name in names if name not in REQUIRED]
    refuse_calls = no_calls(*calls) if calls else None

    def check(code: str) -> list[Problem]:
        found = list(refuse_calls(code)) if refuse_calls else []
        used = [name for name in kinds if _has(code, name)]
        return found + [Problem("forbidden", f"`{name}` may not be used here") for name in used]

    return check


def _requires(name: str) -> Check:
    def check(code: str) -> list[Problem]:
        return [] if _has(code, name) else [Problem("required", f"use `{name}` here")]

    return check


def _has(code: str, name: str) -> bool:
    tree = parse(code)
    if tree is None:  # Another check reports it.
        return True
    if name == "recursion":
        return any(node.name in names_in(node) for node in nodes(tree, ast.FunctionDef))
    return any(holds(tree, kind) for kind in REQUIRED[name])
