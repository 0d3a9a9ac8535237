"""Numbers of a program's own beside data that it reads: limits, rates and norms that nobody gave."""

from __future__ import annotations

import ast
import itertools
import re
from collections.abc import Iterator, Mapping, Sequence

from code_chains.analysis.columns import YEARS, constants_by_name
from code_chains.analysis.parsing import nodes
from code_chains.analysis.work import source_of, walk
from code_chains.language.vocabulary import pattern, vocabulary
from code_chains.verification.numbers import mantissa
from code_chains.verification.provenance.given import Given, Origin

SETTING = re.compile(
    r"^n$|interval|seed|\biter|_iter|precision|toler|step|limit|bins|size|digits|width|height|font|dpi"
    r"|epoch|trial|sample|attempt|max|min|alpha|smooth|margin|scale",
    re.I,
)
"""Names of what a program may choose by itself."""
_WORDS = vocabulary("own_numbers")
_WITH_LIMITS = pattern(_WORDS["with_limits"])
"""Times, ages, and statistics, of which everybody knows the limits."""
_LOOKS = ("s", "c", "color", "alpha", "rotation", "pad", "rot")
_OWN = (Origin.WEAK, Origin.UNKNOWN)
_MAX_CHOSEN, _MAX_POINTS, _MAX_SHOWN_CHARS, _HALF = 12, 3, 60, 28
_PLAIN_SHARES = (0.5, 0.25, 0.75, 0.01, 0.001)
"""What a program may multiply with in place of a division."""
_SIGNIFICANT = (0.05, 0.95, 0.99, 0.1, 0.9)


def own_numbers(tree: ast.AST, given: Given) -> list[str]:
    r"""Return the limits, rates, norms and tables of numbers that a program sets beside data, though nobody gave them.

    Args:
        tree: The program.
        given: What it may use.

    Example:
        >>> tree = ast.parse("late = df[df['minutes'] > 45]\ntips = df['bill'].sum() * 0.1")
        >>> own_numbers(tree, Given("How many were late?"))
        ["df['minutes'] > 45", "df['bill'].sum() * 0.1"]
    """
    named = constants_by_name(tree)
    shown = [*_limits(tree, given, named), *_operands(tree, given, named), *_by_text(tree, given)]
    return [text if len(text) <= _MAX_SHOWN_CHARS else f"{text[:_HALF]}…{text[-_HALF:]}" for text in shown]


def _limits(tree: ast.AST, given: Given, named: Mapping[str, ast.expr]) -> Iterator[str]:
    """Yield the comparisons of what is in the data with a number, such as when a boiler is due."""
    counted = set(_counters(tree))
    for node in nodes(tree, ast.Compare):
        left, right = node.left, node.comparators[0]
        limit = named.get(right.id) if isinstance(right, ast.Name) else right
        limit = limit.operand if isinstance(limit, ast.UnaryOp) else limit
        text = source_of(node)
        match node.ops, limit:
            case [ast.Gt() | ast.GtE() | ast.Lt() | ast.LtE()], ast.Constant(value=int() | float() as value):
                is_of_data = not isinstance(left, ast.Constant) and source_of(left) not in counted
                least = _MAX_POINTS if isinstance(right, ast.Name) else _MAX_CHOSEN
                is_chosen = is_own(value, given, least=least) or _is_odd(value, given)
                if is_chosen and is_of_data and not _WITH_LIMITS.search(text):
                    yield f"{text} ({value})" if isinstance(right, ast.Name) else text


def _counters(tree: ast.AST) -> Iterator[str]:
    """Yield the names that a program counts with, or has lengths in."""
    for node in walk(tree):
        match node:
            case (
                ast.AugAssign(target=ast.Name(id=name))
                | ast.For(target=ast.Name(id=name), iter=ast.Call(func=ast.Name(id="range")))
                | ast.For(
                    target=ast.Tuple(elts=[ast.Name(id=name), *_]),
                    iter=ast.Call(func=ast.Name(id="enumerate")),
                )
                | ast.Assign(
                    targets=[ast.Name(id=name)],
                    value=ast.Call(func=ast.Name(id="len") | ast.Attribute(attr="len")),
                )
            ):
                yield name


def _operands(tree: ast.AST, given: Given, named: Mapping[str, ast.expr]) -> Iterator[str]:
    """Yield what is computed of data and a number: a share of a sum, a norm under a name."""
    layout = set(_layout(tree))
    for node in nodes(tree, ast.BinOp):
        for side, other in itertools.permutations((node.left, node.right)) if node not in layout else ():
            value = named.get(side.id) if isinstance(side, ast.Name) else side
            match value:
                case ast.Constant(value=int() | float() as number) if not isinstance(other, ast.Constant):
                    name = side.id if isinstance(side, ast.Name) else ""
                    is_amount = is_own(number, given) and mantissa(number) != 1
                    is_factor = isinstance(node.op, ast.Mult) and (is_amount or is_share(number, given))
                    if name and (is_amount or is_factor) and not SETTING.search(name):
                        yield f"{name} = {number}"
                    elif is_factor and not name:
                        yield source_of(node)


def _layout(tree: ast.AST) -> Iterator[ast.AST]:
    """Yield all parts of what only says how something looks: repeated texts, places and sizes in figures."""
    for node in walk(tree):
        match node:
            case (
                ast.BinOp(left=ast.Constant(value=str()), op=ast.Mult())
                | ast.BinOp(right=ast.Constant(value=str()), op=ast.Mult())
                | ast.Call(
                    func=ast.Attribute(attr="text" | "annotate" | "set_ylim" | "set_xlim" | "ylim" | "xlim")
                )
            ):
                yield from walk(node)
            case ast.BinOp(left=ast.Call(func=ast.Name(id="len")), op=ast.Mult()):  # A part of the rows.
                yield node
            case ast.keyword(arg=str() as name) if SETTING.search(name) or name in _LOOKS:
                yield from walk(node)


def is_own(value: float, given: Given, *, least: float = _MAX_CHOSEN) -> bool:
    """Return whether nobody gave a number, which is no year and above what a program may choose."""
    return abs(value) > least and value not in YEARS and given.origin(float(value)) in _OWN


def _is_odd(value: float, given: Given) -> bool:
    """Return whether nobody gave a fraction, which is none of those that statistics take for significant."""
    return bool(value % 1) and value not in _SIGNIFICANT and given.origin(float(value)) in _OWN


def is_share(value: float, given: Given) -> bool:
    """Return whether nobody gave a number that is a part of something."""
    return 0 < value < 1 and value not in _PLAIN_SHARES and given.origin(value) in _OWN


def _by_text(tree: ast.AST, given: Given) -> Iterator[str]:
    """Yield tables of numbers by texts, as of prices: not the places of months, nor points."""
    for node in nodes(tree, ast.Assign):
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Dict(keys=keys, values=values)) if (
                not SETTING.search(name)
            ):
                texts = [key.value for key in keys if isinstance(key, ast.Constant)]
                numbers = [value.value for value in values if isinstance(value, ast.Constant)]
                if len(texts) == len(numbers) == len(keys) > 1 and _is_own_table(texts, numbers, given):
                    yield f"{name} = {source_of(node.value)}"


def _is_own_table(texts: Sequence[object], numbers: Sequence[object], given: Given) -> bool:
    """Return whether each text stands for a number, and one of these was not given."""
    if not all(isinstance(text, str) and len(text) > 2 and not SETTING.match(text) for text in texts):
        return False
    values = sorted(float(number) for number in numbers if isinstance(number, int | float))
    is_order = all(second - first == 1 for first, second in itertools.pairwise(values))
    own = [value for value in values if abs(value) > _MAX_POINTS and mantissa(value) != 1]
    return len(values) == len(texts) and not is_order and any(given.origin(value) in _OWN for value in own)
