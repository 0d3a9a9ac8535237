"""Comparisons of days that compare something else: the characters of texts, or midnight of a last day."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator

from code_chains.analysis.columns import constants_by_name
from code_chains.analysis.parsing import nodes, parse

_ORDERS = (ast.Lt, ast.LtE, ast.Gt, ast.GtE)
_DAY = r"(?:0?[1-9]|[12]\d|3[01])"
_DAY_TEXT = re.compile(rf"\s*{_DAY}([./-]){_DAY}\1\d{{4}}\s*|{_DAY}/{_DAY}/\d\d|\d\d\.\d\d\.\d\d")
_WHOLE_DAY = re.compile(r"[12]\d{3}-\d{2}-\d{2}")
_CONVERTING = re.compile(
    r"to_datetime|strptime|parse_dates|fromisoformat|Timestamp|date_parser|dateutil|dayfirst|to_date"
)
_TIMES = re.compile(r"`([^`\n]{1,100})` \(datetime")
"""A column with times of day, as a profile shows it."""


def misread_days(code: str, profile: str) -> str:
    r"""Return as a sentence what a program compares in place of days; empty if nothing is known.

    Args:
        code: The program.
        profile: What the model was shown of the data.

    Example:
        >>> misread_days("print((df['day'] >= '01/04/2023').sum())", "")[:59]
        'Texts such as `01/04/2023` are compared by their characters'
    """
    tree = parse(code)
    if tree is None:
        return ""
    compared = list(_compared(tree))
    # A column that is assigned may have no times any more.
    timed = set(_TIMES.findall(profile)) - set(_assigned(tree))
    for _, _, text in compared:
        if _DAY_TEXT.fullmatch(text) and not _CONVERTING.search(code):
            return (
                f"Texts such as `{text}` are compared by their characters and not as days: convert the column with"
                " pd.to_datetime (dayfirst=True if days come first), and compare with pd.Timestamp."
            )
    for place, is_last, text in compared:
        match place:
            case ast.Subscript(slice=ast.Constant(value=str() as column)) if is_last and column in timed:
                if _WHOLE_DAY.fullmatch(text):
                    return f"`{column}` has times, so that of {text} only midnight counts: compare with < the day after."
    return ""


def _assigned(tree: ast.AST) -> Iterator[str]:
    for node in nodes(tree, ast.Subscript):
        match node:
            case ast.Subscript(slice=ast.Constant(value=str() as name), ctx=ast.Store()):
                yield name


def _compared(tree: ast.AST) -> Iterator[tuple[ast.expr, bool, str]]:
    """Yield what a program compares by order with a text, whether that is the last to count, and the text."""
    named = constants_by_name(tree)
    for node in nodes(tree, ast.Compare):
        sides = [node.left, *node.comparators]
        for first, order, second in zip(sides, node.ops, sides[1:], strict=False):
            if isinstance(order, _ORDERS):
                yield from ((first, isinstance(order, ast.LtE), text) for text in _texts(second, named))
                yield from ((second, isinstance(order, ast.GtE), text) for text in _texts(first, named))
    for call in nodes(tree, ast.Call):
        match call:
            case ast.Call(func=ast.Attribute(value=place, attr="between"), args=[low, high, *_]):
                yield from ((place, False, text) for text in _texts(low, named))
                yield from ((place, True, text) for text in _texts(high, named))


def _texts(node: ast.expr, named: dict[str, ast.expr]) -> Iterator[str]:
    """Yield the text of a constant, also under a name or made a time of pandas."""
    match named.get(node.id, node) if isinstance(node, ast.Name) else node:
        case ast.Constant(value=str() as text):
            yield text
        case ast.Call(
            func=ast.Attribute(attr="Timestamp" | "to_datetime"), args=[ast.Constant(value=str() as text)]
        ):
            yield text
