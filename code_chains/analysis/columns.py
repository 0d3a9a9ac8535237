"""The columns that a profile shows of files and variables, and what programs compare them with."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from code_chains.analysis.parsing import nodes

WHOLE_METHODS = frozenset(["isin", "eq"])
"""Methods of a column that compare whole cells."""
COMPARING_METHODS = WHOLE_METHODS | {"contains", "startswith", "endswith", "match", "fullmatch"}
_COLUMNS = re.compile(r"^\s*columns:(.*)$", re.MULTILINE)
_NAME = re.compile(r"`([^`\n]{1,100})`")


def columns_of(profile: str) -> list[str]:
    r"""Return the names of the columns in what a model was shown, with their line breaks.

    Example:
        >>> columns_of("  columns: `day` (date), `rain\\n(mm)` (float)")
        ['day', 'rain\n(mm)']
    """
    shown = [name for listed in _COLUMNS.findall(profile) for name in _NAME.findall(listed)]
    return [name.replace("\\n", "\n") for name in shown]


def comparisons(tree: ast.AST) -> Iterator[tuple[ast.expr, str, list[object]]]:
    """Yield what a program compares, how, and with which constants: `==`, `in` what has one, or a method of a column.

    What it negates, as by `~`, is left out.
    """
    negations = (
        node.operand for node in nodes(tree, ast.UnaryOp) if isinstance(node.op, ast.Invert | ast.Not)
    )
    negated = {part for operand in negations for part in ast.walk(operand)}
    for node in nodes(tree, ast.Compare):
        if node in negated:
            continue
        match node:
            case ast.Compare(left=left, ops=[ast.Eq()], comparators=[ast.Constant(value=value)]):
                yield left, "==", [value]
            case ast.Compare(left=ast.Constant(value=value), ops=[ast.Eq()], comparators=[right]):
                yield right, "==", [value]
            case ast.Compare(left=ast.Constant(value=str() as value), ops=[ast.In()], comparators=[right]):
                yield right, "in", [value]
    for call in nodes(tree, ast.Call):
        match call:
            case ast.Call(func=ast.Attribute(value=left, attr=name), args=[argument, *_]) if (
                name in COMPARING_METHODS and call not in negated
            ):
                items = argument.elts if isinstance(argument, ast.List | ast.Tuple | ast.Set) else [argument]
                yield left, name, [item.value for item in items if isinstance(item, ast.Constant)]
