"""Which values of tests nothing but the tests themselves can have made: literals, and what builtins make of them.

Invariant: a name counts only if all that binds it is clean and nothing that a program gets can change it; in doubt it does
not count, as an error is the program's fault then.
"""

from __future__ import annotations

import ast
from collections import defaultdict

BUILTINS = frozenset(
    (
        "abs bool chr complex dict divmod enumerate float frozenset int len list max min ord pow range repr"
        " reversed round set sorted str sum tuple zip"
    ).split()
)
"""Functions that look at nothing but their arguments."""
TRANSPARENT = (
    *(
        ast.Module,
        ast.Expr,
        ast.Constant,
        ast.Name,
        ast.Load,
        ast.List,
        ast.Tuple,
        ast.Dict,
        ast.Set,
        ast.BinOp,
        ast.UnaryOp,
    ),
    *(
        ast.Subscript,
        ast.Slice,
        ast.Call,
        ast.operator,
        ast.unaryop,
        ast.Compare,
        ast.cmpop,
        ast.keyword,
        ast.Starred,
    ),
)


def is_clean(tree: ast.AST, names: set[str]) -> bool:
    """Return whether an expression is computed from literals, clean names and builtins alone."""
    for node in ast.walk(tree):
        if not isinstance(node, TRANSPARENT):
            return False
        if isinstance(node, ast.Call) and not (isinstance(node.func, ast.Name) and node.func.id in BUILTINS):
            return False
        if isinstance(node, ast.Name) and node.id not in names | BUILTINS:
            return False
    return True


def clean_names(tests: ast.Module) -> set[str]:
    """Return the names that tests bind to clean values, and hand to nobody."""
    values: dict[str, list[ast.expr]] = defaultdict(list)
    simple, excluded = set[int](), set[str]()
    for node in ast.walk(tests):
        if isinstance(node, ast.Assign) and all(isinstance(target, ast.Name) for target in node.targets):
            for target in node.targets:
                values[getattr(target, "id", "")].append(node.value)
                simple.add(id(target))
    for node in ast.walk(tests):
        excluded |= _excluded(node, simple)
    flat = {name for name, given in values.items() if all(map(_is_flat, given))}
    for call in ast.walk(tests):
        if isinstance(call, ast.Call) and not _is_builtin(call):
            excluded |= _handed(call, flat)
    clean = set(values) - excluded
    while wrong := {name for name in clean if not all(is_clean(value, clean) for value in values[name])}:
        clean -= wrong
    return clean


def _excluded(node: ast.AST, simple: set[int]) -> set[str]:
    """Return the names that a node binds otherwise, or changes."""
    match node:
        case ast.Name(ctx=ast.Store() | ast.Del()) if id(node) not in simple:
            return {node.id}
        case ast.arg():
            return {node.arg}
        case ast.Global(names=names) | ast.Nonlocal(names=names):
            return set(names)
        case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name) | ast.ClassDef(name=name):
            return {name}
        case ast.Subscript(ctx=ast.Store() | ast.Del()) | ast.Attribute():
            return _names(node)
        case ast.AugAssign() | ast.NamedExpr():
            return _names(node.target)
        case _:
            return set()


def _is_builtin(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id in BUILTINS


def _is_flat(value: ast.expr) -> bool:
    """Return whether a value is a literal whose items nobody can change."""
    parts = list(ast.iter_child_nodes(value))
    return isinstance(value, ast.Constant) or all(isinstance(part, ast.Constant | ast.Load) for part in parts)


def _handed(call: ast.Call, flat: set[str]) -> set[str]:
    """Return the names that a call hands to a function that may be the program's; an item of a flat one is nothing of it."""
    pending: list[ast.AST] = [call]
    names = set[str]()
    while pending:
        node = pending.pop()
        is_item = (
            isinstance(node, ast.Subscript) and isinstance(node.value, ast.Name) and node.value.id in flat
        )
        if isinstance(node, ast.Name):
            names.add(node.id)
        if not is_item:
            pending += ast.iter_child_nodes(node)
    return names


def _names(tree: ast.AST) -> set[str]:
    return {node.id for node in ast.walk(tree) if isinstance(node, ast.Name)}
