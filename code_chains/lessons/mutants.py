"""Mutants of a solution: programs with one small mistake, which good tests reject."""

from __future__ import annotations

import ast
import itertools
from dataclasses import dataclass

from code_chains.analysis.parsing import parse

_SWAPS: dict[type[ast.AST], type[ast.AST]] = {
    ast.Lt: ast.LtE,
    ast.LtE: ast.Lt,
    ast.Gt: ast.GtE,
    ast.GtE: ast.Gt,
    ast.Eq: ast.NotEq,
    ast.NotEq: ast.Eq,
    ast.Add: ast.Sub,
    ast.Sub: ast.Add,
    ast.Mult: ast.Add,
    ast.FloorDiv: ast.Div,
    ast.And: ast.Or,
    ast.Or: ast.And,
}
_PRINTS_ALL = "\nfor _number in range(-200, 2000):\n    print(_number, end=' ')\n"
_ON_ONE_LINE = "import functools\nprint = functools.partial(print, end=' ')\n"


@dataclass(frozen=True)
class Mutant:
    """A program with one mistake.

    Attributes:
        code: The program.
        line: The line of the solution that was changed.
        change: What it was, and what it is now.
    """

    code: str
    line: int
    change: str


def mutants(code: str, *, limit: int, prints: bool = False, has_lines: bool = False) -> list[Mutant]:
    """Return mutants of a program, spread over all of it.

    Args:
        code: The solution.
        limit: How many at most.
        prints: Whether its output is tested; then one prints everything that a test could look for.
        has_lines: Whether several lines of output are expected; then one prints all on one.
    """
    tree = parse(code)
    if tree is None:
        return []
    changes = [
        (index, number) for index, node in enumerate(ast.walk(tree)) for number in range(len(_changes(node)))
    ]
    step = max(1, -(-len(changes) // limit))
    chosen = list(dict.fromkeys(filter(None, (_mutant(code, *change) for change in changes[::step]))))
    last = code.count("\n") + 1
    if prints:
        chosen.append(Mutant(code + _PRINTS_ALL, last, "prints all numbers, too"))
    if has_lines:
        chosen.append(Mutant(_ON_ONE_LINE + code, 1, "prints all on one line"))
    return chosen


def _mutant(code: str, index: int, number: int) -> Mutant | None:
    """Return a program with one change of one node; None if it is too deep to be written."""
    tree = ast.parse(code)
    node = next(itertools.islice(ast.walk(tree), index, None))
    try:
        before = _first_line(node)
        field, value = _changes(node)[number]
        setattr(node, field, value)
        text = ast.unparse(ast.fix_missing_locations(tree))
        return Mutant(f"{text}\n", getattr(node, "lineno", 1), f"`{_first_line(node)}` for `{before}`")
    except RecursionError:
        return None


def _first_line(node: ast.AST) -> str:
    return ast.unparse(node).split("\n")[0]


def _changes(node: ast.AST) -> list[tuple[str, object]]:
    """Return what may be changed in a node: fields with their new values."""
    match node:
        case ast.Compare(
            left=ast.Attribute(attr=one), ops=[ast.Eq()], comparators=[ast.Attribute(attr=other)]
        ) if one == other:
            # Of `__eq__`, which then holds for all objects of its class.
            return [("comparators", [node.left]), ("ops", [ast.NotEq()])]
        case ast.Compare(ops=[operator, *others]) if type(operator) in _SWAPS:
            return [("ops", [_SWAPS[type(operator)](), *others])]
        case ast.BinOp(op=operator) | ast.AugAssign(op=operator) if type(operator) in _SWAPS:
            return [("op", _SWAPS[type(operator)]())]
        case ast.BoolOp(op=operator, values=[first, *_]):
            return [("op", _SWAPS[type(operator)]()), ("values", [first])]
        case ast.Constant(value=int() as value) if not isinstance(value, bool):
            return [("value", value + 1), ("value", value - 1)]
        case ast.Constant(value=bool() as value):
            return [("value", not value)]
        case ast.Return(value=ast.expr()):
            return [("value", ast.Constant(None))]
        case ast.If(test=test):
            return [("test", ast.UnaryOp(ast.Not(), test))]
    return []
