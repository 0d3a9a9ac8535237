"""The columns that a profile shows of files and variables, and what programs compare them with."""

from __future__ import annotations

import ast
import re
from collections import Counter
from collections.abc import Iterator, Mapping

from code_chains.analysis.parsing import has_vast_numbers, nodes, parse
from code_chains.analysis.work import walk

WHOLE_METHODS = frozenset(["isin", "eq"])
"""Methods of a column that compare whole cells."""
COMPARING_METHODS = WHOLE_METHODS | {"contains", "startswith", "endswith", "match", "fullmatch"}
_COLUMNS = re.compile(r"^\s*columns:(.*)$", re.MULTILINE)
_NAME = re.compile(r"`([^`\n]{1,100})`")
_STATISTICS = frozenset(["count", "mean", "std", "min", "max"])
"""By which what `describe` and `agg` return is looked up."""
YEARS = range(1900, 2101)
"""What a whole number in data may be the year of."""
_CHOICES = (ast.List, ast.Tuple, ast.Set)
_VARIABLE = "variable_"
"""What stands in a condition in place of the sign for a variable."""


def columns_of(profile: str) -> list[str]:
    r"""Return the names of the columns in what a model was shown, with their line breaks.

    Example:
        >>> columns_of("  columns: `day` (date), `rain\\n(mm)` (float)")
        ['day', 'rain\n(mm)']
    """
    shown = [name for listed in _COLUMNS.findall(profile) for name in _NAME.findall(listed)]
    return [name.replace("\\n", "\n") for name in shown]


def comparisons(tree: ast.AST) -> Iterator[tuple[ast.expr, str, list[object]]]:
    """Yield what a program compares, how, and with which constants.

    How is `==`, `in` for what has a constant in it, or a method of a column; `isin` also for one of several constants and
    for the label of a row or group. What it negates, as by `~`, is left out.

    Example:
        >>> [(ast.unparse(place), how) for place, how, _ in comparisons(ast.parse("df.query('rain == 3')"))]
        [("rain['rain']", '==')]
    """
    named = constants_by_name(tree)
    yield from _comparisons(tree, named)
    indexed = set(_indexed(tree))
    if len(indexed) == 1:  # Else nobody knows whose values the labels are.
        column = ast.Constant(indexed.pop())
        for label in _labels(tree):
            yield ast.Subscript(column, column), "isin", [label]
    for call in nodes(tree, ast.Call):
        match call:
            case ast.Call(func=ast.Attribute(attr="query"), args=[ast.Constant(value=str() as text), *_]):
                yield from _queried(text, named)


def constants_by_name(tree: ast.AST) -> dict[str, ast.expr]:
    """Return the constants, and lists of them, by the names that stand for them and are assigned once."""
    assigned: dict[str, ast.expr] = {}
    for node in nodes(tree, ast.Assign):
        for target in node.targets:
            if isinstance(target, ast.Name) and isinstance(node.value, (ast.Constant, *_CHOICES)):
                assigned[target.id] = node.value
    stored = Counter(node.id for node in nodes(tree, ast.Name) if isinstance(node.ctx, ast.Store))
    return {name: value for name, value in assigned.items() if stored[name] == 1}


def _indexed(tree: ast.AST) -> Iterator[str]:
    """Yield the columns by whose values a program may look up rows or groups."""
    for node in walk(tree):
        match node:
            case (
                ast.Call(
                    func=ast.Attribute(attr="set_index" | "groupby"),
                    args=[ast.Constant(value=str() as name), *_],
                )
                | ast.keyword(arg="index_col", value=ast.Constant(value=str() as name))
            ):
                yield name


def _labels(tree: ast.AST) -> Iterator[str | int]:
    """Yield the texts and years by which a program looks up a row or a group."""
    for node in walk(tree):
        match node:
            case (
                ast.Call(
                    func=ast.Attribute(attr="get_group" | "xs"),
                    args=[ast.Constant(value=str() | int() as label), *_],
                )
                | ast.Subscript(
                    ast.Attribute(attr="loc" | "at"), ast.Constant(value=str() | int() as label), ast.Load()
                )
                | ast.Subscript(
                    ast.Attribute(attr="loc" | "at"),
                    ast.Tuple(elts=[ast.Constant(value=str() | int() as label), *_]),
                    ast.Load(),
                )
            ) if label not in _STATISTICS and (isinstance(label, str) or label in YEARS):
                yield label


def _queried(text: str, named: Mapping[str, ast.expr]) -> Iterator[tuple[ast.expr, str, list[object]]]:
    """Yield what a condition compares that pandas reads in a text, with columns as they are looked up elsewhere."""
    columns: dict[str, str] = {}
    for name in _NAME.findall(text):
        columns[f"column_{len(columns)}"] = name
        text = text.replace(f"`{name}`", f"column_{len(columns) - 1}")
    condition = parse(text.strip().replace("@", _VARIABLE))
    if condition is None or has_vast_numbers(condition):
        return
    variables = {f"{_VARIABLE}{name}": value for name, value in named.items()}
    for place, how, values in _comparisons(condition, variables):
        if isinstance(place, ast.Name):
            column = ast.Constant(columns.get(place.id, place.id))
            yield ast.Subscript(place, column), how, values


def _comparisons(
    tree: ast.AST, named: Mapping[str, ast.expr]
) -> Iterator[tuple[ast.expr, str, list[object]]]:
    negations = (
        node.operand for node in nodes(tree, ast.UnaryOp) if isinstance(node.op, ast.Invert | ast.Not)
    )
    negated = set[ast.AST]()
    for operand in negations:  # The outer ones come first.
        if operand not in negated:
            negated.update(walk(operand))
    for node in nodes(tree, ast.Compare):
        if node not in negated:
            yield from _compared(node, named)
    for choice in nodes(tree, ast.Match):
        patterns = (pattern for case in choice.cases for pattern in nodes(case.pattern, ast.MatchValue))
        yield from ((choice.subject, "==", _constants(pattern.value)) for pattern in patterns)
    for call in nodes(tree, ast.Call):
        match call:
            case ast.Call(func=ast.Attribute(value=place, attr=name), args=[argument, *_]) if (
                name in COMPARING_METHODS and call not in negated
            ):
                yield place, name, _constants(_resolved(argument, named))


def _compared(
    node: ast.Compare, named: Mapping[str, ast.expr]
) -> Iterator[tuple[ast.expr, str, list[object]]]:
    left, right = (_resolved(side, named) for side in (node.left, node.comparators[0]))
    match node.ops, left, right:
        case [ast.Eq()], _, ast.Constant(value=value):
            yield left, "==", [value]
        case [ast.Eq()], ast.Constant(value=value), _:
            yield right, "==", [value]
        case [ast.In()], ast.Constant(value=str() as value), _:
            yield right, "in", [value]
        case [ast.In()], _, choices if isinstance(choices, _CHOICES):
            yield left, "isin", _constants(choices)


def _resolved(node: ast.expr, named: Mapping[str, ast.expr]) -> ast.expr:
    return named.get(node.id, node) if isinstance(node, ast.Name) else node


def _constants(node: ast.expr) -> list[object]:
    items = node.elts if isinstance(node, _CHOICES) else [node]
    return [item.value for item in items if isinstance(item, ast.Constant)]
