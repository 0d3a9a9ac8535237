"""Constants in the expressions of a program."""

from __future__ import annotations

import ast
from collections.abc import Iterable, Sequence

from code_chains.analysis.dotted_names import words
from code_chains.analysis.work import spend
from code_chains.inputs.text import folded


def text_of(node: ast.expr | None) -> str | None:
    """Return the value of a text."""
    match node:
        case ast.Constant(value=str() as text):
            return text
    return None


_CALENDAR = words(
    "jan feb fev mar apr abr avr mai may mag jun jui giu jul lug aug ago aou sep set okt oct ott out nov dez dec dic gen ene"
    " mon tue wed thu fri sat sun die mit don fre sam son lun mer jeu ven dim mie jue vie sab dom seg ter qua qui sex gio"
)
"""How the names of days and months begin in the larger languages of Europe."""


def is_calendar(elements: Sequence[ast.expr]) -> bool:
    """Return whether elements are the names of the days of a week or the months of a year."""
    names = [folded(name) for element in elements if (name := text_of(element))]
    return len(names) == len(elements) in (7, 12) and all(name[:3] in _CALENDAR for name in names)


def is_label(node: ast.expr) -> bool:
    """Return whether a constant is a single letter, as that of a row, or an empty text."""
    text = text_of(node)
    return text is not None and len(text) <= 1


def is_not_constant(node: ast.expr) -> bool:
    """Return whether an expression is no constant, nor a number with a sign."""
    return not isinstance(node, ast.Constant) and number_of(node) is None


def number_of(node: ast.expr) -> float | None:
    """Return the value of a number, also with a sign."""
    if isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.USub | ast.UAdd):
        node = node.operand
    if (
        isinstance(node, ast.Constant)
        and isinstance(node.value, int | float)
        and not isinstance(node.value, bool)
    ):
        try:
            return float(node.value)
        except OverflowError:
            return None
    return None


def factors_of(node: ast.expr) -> list[tuple[ast.expr, float]]:
    """Return the numbers that an expression multiplies or divides; none if it has other parts."""
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Mult | ast.Div):
        left, right = factors_of(node.left), factors_of(node.right)
        return [*left, *right] if left and right else []
    number = number_of(node)
    return [] if number is None else [(node, number)]


class Leaves:
    """The elements of displays within displays, and those of records; those of each display are found once."""

    def __init__(self) -> None:
        self._of: dict[ast.expr, list[ast.expr]] = {}

    def of(self, elements: Iterable[ast.expr]) -> list[ast.expr]:
        """Return the elements that are no displays."""
        found = list[ast.expr]()
        for element in elements:
            spend()
            nested = _elements(element)
            if nested is None:
                found.append(element)
                continue
            if element not in self._of:
                self._of[element] = self.of(nested)
            found += self._of[element]
        return found


def _elements(node: ast.expr) -> list[ast.expr] | None:
    match node:
        case ast.List(elts=nested) | ast.Tuple(elts=nested) | ast.Set(elts=nested) | ast.Dict(values=nested):
            return nested
        case ast.Call(func=ast.Name(id=name), args=nested) if name[:1].isupper():  # A record of a class.
            return nested
    return None
