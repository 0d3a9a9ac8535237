"""Tell programs from other text."""

from __future__ import annotations

import ast
import warnings

from code_chains.analysis.parsing import UNREADABLE, holds, names_in, nodes, parse
from code_chains.analysis.work import spend, walk

_MAX_COMPILED_CHARS = 200_000
_DISPLAYED = ast.Name | ast.Constant | ast.Tuple | ast.Attribute | ast.Compare | ast.Dict | ast.List | ast.Set
"""Expressions that compute nothing: prose such as "Hello", and data."""


_JSON_NAMES = {"null", "true", "false"}


class Syntax:
    """Tells programs from other text; compiles at most 200,000 characters, so that time is bounded."""

    def __init__(self) -> None:
        self._chars_left = _MAX_COMPILED_CHARS

    def is_valid(self, code: str) -> bool:
        """Return whether text is Python that compiles and is not empty; False once the limit is reached."""
        self._chars_left -= len(code)
        if self._chars_left < 0:
            return False
        tree = parse(code)
        return tree is not None and bool(tree.body) and _compiles(tree)

    def is_program(self, code: str) -> bool:
        """Return whether text is valid and computes anything: a name, a constant or data alone is not a program."""
        if not self.is_valid(code):
            return False
        tree = parse(code)
        return tree is not None and not all(map(_is_idle, tree.body))

    def is_data(self, code: str) -> bool:
        """Return whether text is nothing but one dict, list or set of constants, such as a tool call."""
        tree = parse(code)
        if tree is None or len(tree.body) != 1 or not isinstance(tree.body[0], ast.Expr):
            return False
        value = tree.body[0].value
        if not isinstance(value, ast.Dict | ast.List | ast.Set):
            return False
        return not holds(value, ast.Call) and names_in(value) <= _JSON_NAMES

    def is_call(self, code: str) -> bool:
        """Return whether text is nothing but the call of a tool: its name and its arguments, as data."""
        tree = parse(code)
        if tree is None or not self.is_data(code) or not isinstance(tree.body[0], ast.Expr):
            return False
        value = tree.body[0].value
        keys = value.keys if isinstance(value, ast.Dict) else []
        return {key.value for key in keys if isinstance(key, ast.Constant)} >= _CALL_KEYS


_CALL_KEYS = {"name", "arguments"}


def _compiles(tree: ast.Module) -> bool:
    spend(sum(1 for _ in walk(tree)))
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(tree, "<reply>", "exec", ast.PyCF_ALLOW_TOP_LEVEL_AWAIT, True)
    except UNREADABLE:
        return False
    return True


def _is_idle(node: ast.stmt) -> bool:
    if isinstance(node, ast.AnnAssign):  # "Answer: 42"
        return node.value is None
    value = node.value if isinstance(node, ast.Expr) else None
    if isinstance(value, ast.Subscript):  # "[TOOL_CALLS] [1]"
        return isinstance(value.value, ast.List)
    return isinstance(value, _DISPLAYED)


def top_level_names(code: str, *, definitions: bool = False) -> set[str]:
    """Return the names that a program binds outside of functions, or those of its functions and classes alone."""
    tree = parse(code)
    names: set[str] = set()
    for node in tree.body if tree else ():
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef):
            names.add(node.name)
        elif not definitions:
            names |= _bound(node)
    return names


def top_level_variables(code: str) -> set[str]:
    """Return the names that a program assigns outside of functions; empty if it reads one of them before."""
    tree, made = parse(code), set[str]()
    others = ast.Import | ast.ImportFrom | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    simple = [node for node in (tree.body if tree else ()) if not isinstance(node, others)]
    names = set[str]().union(*map(_bound, simple))
    for node in simple:
        bound = _bound(node)
        read = {one.id for one in walk(node) if isinstance(one, ast.Name) and isinstance(one.ctx, ast.Load)}
        if isinstance(node, ast.AugAssign):
            read |= bound
        elif not isinstance(node, ast.Assign | ast.AnnAssign):  # A loop binds what its body reads.
            read -= bound
        if names & read - made:
            return set()
        made |= bound
    return names


def _bound(node: ast.AST) -> set[str]:
    names: set[str] = set()
    for child in walk(node):
        if isinstance(child, ast.Name) and isinstance(child.ctx, ast.Store):
            names.add(child.id)
        elif isinstance(child, ast.alias):
            names.add((child.asname or child.name).partition(".")[0])
    return names


def used_names(code: str) -> set[str]:
    """Return the names that a program reads and binds nowhere."""
    tree = parse(code)
    if tree is None:
        return set()
    loads = {node.id for node in nodes(tree, ast.Name) if isinstance(node.ctx, ast.Load)}
    arguments = {node.arg for node in nodes(tree, ast.arg)}
    return loads - top_level_names(code) - arguments - _bound(tree)


def computes(code: str) -> bool:
    """Return whether a program calls or defines anything: a fragment that only assigns is of no use alone."""
    tree = parse(code)
    kinds = ast.Call | ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    return tree is not None and holds(tree, kinds)
