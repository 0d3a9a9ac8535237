"""What a program has in place of a column that its data may lack: a zero, a default or what stood there before."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Iterator, Sequence

from code_chains.analysis.columns import columns_of
from code_chains.analysis.parsing import nodes, parse
from code_chains.verification.letters import folded
from code_chains.verification.provenance.synonyms import holds, parts

_PARTLY_SHOWN = re.compile(r"and \d+ more$|\bJSON\b|\((?:list|dict)", re.MULTILINE)
"""What a profile says of data whose names it does not show all."""


def absent_column(asked: str, code: str, profile: str) -> str:
    r"""Return which column a question asks for and a program goes on without, as the data has none of it; empty if none.

    A program that says so in words of its own is left alone.

    Args:
        asked: The question.
        code: The program, which ran without error.
        profile: What the model was shown of the data.

    Example:
        >>> code = "try:\n    total = df['discount'].sum()\nexcept KeyError:\n    total = 0\nprint(total)"
        >>> absent_column("What is the total discount?", code, "columns: `price` (int)")
        'discount'
    """
    tree, shown, asked = parse(code), folded(profile), folded(asked)
    if tree is None or not columns_of(profile) or _PARTLY_SHOWN.search(profile):
        return ""
    for name, stand_in in _stand_ins(tree):
        is_asked_for = any(holds(asked, part) for part in parts(name))
        if is_asked_for and folded(name) not in shown and _is_only_read(tree, name) and not _says(stand_in):
            return name
    return ""


def _stand_ins(tree: ast.AST) -> Iterator[tuple[str, Sequence[ast.AST]]]:
    """Yield the names that a program looks up where they may be missing, with what happens then."""
    for node in ast.walk(tree):
        match node:
            case ast.Try(body=body, handlers=handlers):
                caught = [statement for handler in handlers for statement in handler.body]
                yield from ((name, caught) for statement in body for name in _looked_up(statement))
            case ast.If(test=test, body=body, orelse=orelse):
                yield from _tested(test, body, orelse)
            case ast.IfExp(test=test, body=value, orelse=other):
                yield from _tested(test, [value], [other])
            case ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str() as name), default]):
                yield name, [default]


def _tested(
    test: ast.expr, held: Sequence[ast.AST], other: Sequence[ast.AST]
) -> Iterator[tuple[str, Sequence[ast.AST]]]:
    match test:
        case ast.Compare(left=ast.Constant(value=str() as name), ops=[ast.In()]) if other:
            yield name, other
        case ast.Compare(left=ast.Constant(value=str() as name), ops=[ast.NotIn()]):
            yield name, held


def _looked_up(tree: ast.AST) -> Iterator[str]:
    for node in nodes(tree, ast.Subscript):
        match node:
            case ast.Subscript(slice=ast.Constant(value=str() as name), ctx=ast.Load()):
                yield name


def _is_only_read(tree: ast.AST, name: str) -> bool:
    """Return whether a program has a text only where it looks it up, and so makes nothing of that name itself."""
    read = [*_looked_up(tree)]
    for node in ast.walk(tree):
        match node:
            case (
                ast.Compare(left=ast.Constant(value=str() as text), ops=[ast.In() | ast.NotIn()])
                | ast.Call(func=ast.Attribute(attr="get"), args=[ast.Constant(value=str() as text), *_])
            ):
                read.append(text)
    return read.count(name) == sum(constant.value == name for constant in nodes(tree, ast.Constant))


def _says(statements: Iterable[ast.AST]) -> bool:
    """Return whether there are words, or an error, in what happens without a column."""
    return any(
        isinstance(node, ast.Raise)
        or (
            isinstance(node, ast.Constant)
            and isinstance(node.value, str)
            and re.search(r"[^\W\d_]", node.value)
        )
        for statement in statements
        for node in ast.walk(statement)
    )
