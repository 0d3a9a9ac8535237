"""What a program binds at its top level."""

from __future__ import annotations

import ast
from collections.abc import Collection, Mapping

from code_chains.analysis.dotted_names import words
from code_chains.analysis.parsing import tree_of

DEFINITIONS = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
_MAKERS = words(
    "partial partialmethod cache lru_cache itemgetter attrgetter methodcaller vectorize singledispatch"
)
"""What makes functions."""


def top_level_names(code: str) -> dict[str, bool]:
    """Return the names that a program binds at its top level, and whether each is a function or class."""
    names: dict[str, bool] = {}
    makers = set(_MAKERS)
    for node in tree_of(code).body:
        if isinstance(node, DEFINITIONS):
            names[node.name] = True
            makers |= {node.name} if _makes_functions(node) else set()
        elif isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
            names[node.target.id] = _is_function(node.value, names, makers)
        elif isinstance(node, ast.Assign):
            is_function = _is_function(node.value, names, makers)
            names |= {target.id: is_function for target in node.targets if isinstance(target, ast.Name)}
    return names


def functions_of(code: str) -> list[str]:
    """Return the names of the functions and classes that a program binds at its top level, in order."""
    return [name for name, is_function in top_level_names(code).items() if is_function]


def _makes_functions(node: ast.stmt) -> bool:
    """Return whether a class defines how its objects are called."""
    methods = node.body if isinstance(node, ast.ClassDef) else []
    return any(isinstance(method, ast.FunctionDef) and method.name == "__call__" for method in methods)


def _is_function(value: ast.expr | None, names: Mapping[str, bool], makers: Collection[str]) -> bool:
    """Return whether an expression is a function: an alias, a method of an object, or what makes one returns."""
    match value:
        case ast.Name(id=name):
            return names.get(name, False)
        case ast.Attribute(value=ast.Call(func=ast.Name(id=owner))):
            return names.get(owner, False)
        case ast.Call(func=ast.Name(id=maker) | ast.Attribute(attr=maker)):
            return maker in makers
    return isinstance(value, ast.Lambda)
