"""Parse whatever a model may have written."""

from __future__ import annotations

import ast
import functools
import warnings
from collections.abc import Iterator
from contextlib import suppress
from types import UnionType
from typing import TypeVar

from code_chains.analysis.work import spend_on_source, walk

Node = TypeVar("Node", bound=ast.AST)
UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What `syntax_tree` raises."""
_MAX_TRIES = 100
_MAX_FLOAT_BITS = 1000
_MAX_CACHED, _MAX_CACHED_CHARS = 8, 20_000


def parse(code: str) -> ast.Module | None:
    """Return the tree of a program; None if it is not Python, or nested too deeply. Never raise, and never warn.

    Invariant: trees are cached and shared, as several stages read the same program. Never mutate one.
    """
    spend_on_source(code)
    return _cached(code) if len(code) <= _MAX_CACHED_CHARS else _cached_long(code)


def tree_of(code: str) -> ast.Module:
    """Return the tree of a program as `parse` does; an empty one if there is none."""
    return parse(code) or ast.Module([], [])


def _parse(code: str) -> ast.Module | None:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return syntax_tree(code)
    except UNREADABLE:
        return None


_cached = functools.lru_cache(_MAX_CACHED)(_parse)
# Stages read a long program several times in a row, and the parser lets nothing else run.
_cached_long = functools.lru_cache(1)(_parse)


def syntax_tree(code: str) -> ast.Module:
    """Return a new tree of a program, also while other threads parse; errors are `UNREADABLE`."""
    for _ in range(_MAX_TRIES):
        with suppress(SystemError):  # Until Python 3.12 threads share a recursion counter (gh-106905).
            return ast.parse(code)
    return ast.parse(code)


def nodes(tree: ast.AST, kind: type[Node]) -> Iterator[Node]:
    """Yield the nodes of a tree that are of a kind."""
    for node in walk(tree):
        if isinstance(node, kind):
            yield node


def texts_in(tree: ast.AST) -> Iterator[str]:
    """Yield the texts that a tree spells out."""
    for node in nodes(tree, ast.Constant):
        if isinstance(node.value, str):
            yield node.value


def has_vast_numbers(tree: ast.AST) -> bool:
    """Return whether a tree has an integer that no float holds, such as a key, which cannot be compared with others."""
    constants = (node.value for node in nodes(tree, ast.Constant))
    return any(isinstance(value, int) and value.bit_length() > _MAX_FLOAT_BITS for value in constants)


def holds(tree: ast.AST, kind: type[ast.AST] | UnionType) -> bool:
    """Return whether a tree has a node of a kind."""
    return any(isinstance(node, kind) for node in walk(tree))


def called_names(tree: ast.AST) -> set[str]:
    """Return the names that are called in a tree; methods are none."""
    return {call.func.id for call in nodes(tree, ast.Call) if isinstance(call.func, ast.Name)}


def arguments_of(call: ast.Call) -> list[ast.expr]:
    """Return what a call passes, by position and by keyword."""
    return [*call.args, *(keyword.value for keyword in call.keywords)]


def positional_parameters(function: ast.FunctionDef | ast.AsyncFunctionDef) -> list[str]:
    """Return the names of the parameters that a function takes by position."""
    return [argument.arg for argument in (*function.args.posonlyargs, *function.args.args)]


def captured_names(tree: ast.AST) -> Iterator[str]:
    """Yield the names that the patterns in a tree bind."""
    for node in walk(tree):
        if name := getattr(node, "name", None) or getattr(node, "rest", None):
            yield name


def names_in(*trees: ast.AST) -> set[str]:
    """Return the names that occur in trees."""
    return {node.id for tree in trees for node in nodes(tree, ast.Name)}


def child_statements(node: ast.AST) -> list[ast.AST]:
    """Return the statements of a node's blocks, and the clauses that have blocks: `except` and `case`."""
    kinds = ast.stmt | ast.excepthandler | ast.match_case
    return [child for child in ast.iter_child_nodes(node) if isinstance(child, kinds)]


def error_line(code: str) -> int:
    """Return the line, from 1, at which text stops being Python; the line after its last one if it is valid."""
    try:
        compile(code, "<code>", "exec", ast.PyCF_ONLY_AST, True)
    except SyntaxError as error:
        return error.lineno or 1
    except (ValueError, RecursionError, MemoryError):
        return 1
    return code.count("\n") + 2
