"""What a program assumes, as it says beside a comment or shows by values of its own."""

from __future__ import annotations

import ast
import itertools
import re
from collections import defaultdict
from collections.abc import Iterator
from dataclasses import dataclass

from code_chains.analysis.parsing import nodes, parse, texts_in
from code_chains.analysis.work import walk
from code_chains.language.vocabulary import either, vocabulary
from code_chains.verification.provenance.given import Given, Origin, written_numbers
from code_chains.verification.provenance.needs import NOTHING, comments_in
from code_chains.verification.provenance.own_numbers import SETTING, own_numbers

_WORDS = vocabulary("assumptions")
_SUPPOSING = either(_WORDS["supposing"])
_ASSUMING = re.compile(
    rf"(?:({_SUPPOSING})|\b(?:placeholder|made[- ]up|example\b|replace (?:this|with)))"
    r"(?:\s*(?:that|dass|que|che)\b)?:?\s*(.*)",
    re.IGNORECASE,
)
"""What small models write beside a value that they have made up."""
_MAX_TRIVIAL, _MIN_TEXT_CHARS, _MAX_VALUE_CHARS = 2, 4, 40
_READING = re.compile(r"\b(?:open|read_\w+|read_text|input|connect)\(")
_MAX_DATE_PART = 10_000
_DATES = ("date", "datetime", "Timestamp")
_DAY = re.compile(r"[12]\d{3}-\d{2}-\d{2}")
_BORDER = re.compile(r"-(?:01|02|28|29|30|31)$|12-2[456]$|02-14$|07-04$|11-11$")
"""Days that a program may choose: the ends of months, a day with the next one for times, and those that have names."""
_KNOWN = (Origin.GIVEN, Origin.DERIVED, Origin.KNOWN)
_AROUND = " \t*_\"'()#.,:"
_MAX_ASSUMED, _MAX_CHARS = 5, 200


def assumed_values(code: str, given: Given, *, has_input: bool = False) -> tuple[str, ...]:
    r"""Return what a program says or shows that it assumes: beside comments, as dates that nobody named, as plain numbers.

    Args:
        code: The program.
        given: What it may use.
        has_input: Whether it has files or variables; then a number under a name may be a setting, such as how many to show.

    Example:
        >>> question = "How many cm are left on the wall beside a shelf of 84 cm?"
        >>> assumed_values("wall = 100  # Assuming the wall is 100 cm wide\nprint(wall - 84)", Given(question))
        ('the wall is 100 cm wide',)
    """
    tree = parse(code)
    if tree is None:
        return ()
    lines = {line for node in nodes(tree, ast.Assign) for line in _lines_of_own_values(node, given)}
    assumed = [one.text for one in _assumptions(code) if one.lines & lines or one.is_own(given)]
    dates = _own_dates(tree, given)
    own_names = [] if has_input or assumed else [*_named_numbers(tree, given), *_named_values(tree, given)]
    own = own_numbers(tree, given) if has_input else []
    found = [*assumed, *dates, *_same_values(tree, given), *own_names, *own]
    return tuple(dict.fromkeys(found))[:_MAX_ASSUMED]


def _named_numbers(tree: ast.Module, given: Given) -> list[str]:
    """Return the common numbers that a program gives a name of its own: `hours_worked = 20`."""
    found = []
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Constant(value=int() | float() as value)):
                is_weak = abs(value) > _MAX_TRIVIAL and given.origin(float(value)) is Origin.WEAK
                if is_weak and not SETTING.search(name):
                    found.append(f"{name} = {value}")
    return found


def _named_values(tree: ast.Module, given: Given) -> list[str]:
    """Return the lists and texts of its own that a program gives a name of the question: `ages = [10, 12, 14]`."""
    found = []
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if given.mentions(name):
                if _is_own_list(value, given) or _is_own_text(value, given):
                    found.append(f"{name} = {ast.unparse(value)[:_MAX_VALUE_CHARS]}")
    return found


def _is_own_list(node: ast.expr, given: Given) -> bool:
    """Return whether an expression is a list of numbers of which none was given, other than a count."""
    numbers = _numbers_of(node) if isinstance(node, ast.List | ast.Tuple) else ()
    origins = {given.origin(number) for number in numbers}
    is_count = all(second - first == 1 for first, second in itertools.pairwise(numbers))
    return bool(origins) and Origin.GIVEN not in origins and origins != {Origin.KNOWN} and not is_count


def _is_own_text(node: ast.expr, given: Given) -> bool:
    match node:
        case ast.Constant(value=str() as text):
            return len(text) >= _MIN_TEXT_CHARS and any(map(str.isalpha, text)) and not given.holds(text)
    return False


def _same_values(tree: ast.Module, given: Given) -> list[str]:
    """Return which names stand for the same value, though the question states it once: what a hallway and a tin cover."""
    names: defaultdict[tuple[float, ...], list[str]] = defaultdict(list)
    for node in tree.body:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=value):
                names[_numbers_of(value)].append(name)
    return [
        " = ".join(dict.fromkeys(same))
        for values, same in names.items()
        if len(set(same)) > 1 and max(map(given.times_stated, values), default=0) == 1
    ]


def _numbers_of(node: ast.expr) -> tuple[float, ...]:
    """Return the numbers that an expression spells out, but for a 0, 1 or 2 alone; empty for any other."""
    match node:
        case ast.List(elts=elements) | ast.Tuple(elts=elements) | ast.Call(args=elements, keywords=[]):
            pass
        case _:
            elements = [node]
    numbers = list[float]()
    for element in elements:
        match element:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                numbers.append(float(value))
            case _:
                return ()
    return tuple(numbers) if max(numbers, default=0.0) > _MAX_TRIVIAL else ()


@dataclass(frozen=True)
class _Assumption:
    """A comment that says that something is assumed.

    Attributes:
        text: What is assumed.
        lines: The lines that it may be about, up to the next blank one.
        is_sure: Whether it says so in a word that means nothing else, and not of a file.
    """

    text: str
    lines: frozenset[int]
    is_sure: bool

    def is_own(self, given: Given) -> bool:
        """Return whether nobody gave what it says: a number, or what no number is in."""
        numbers = set(written_numbers(self.text))
        origins = {given.origin(value) for value in numbers}
        is_given = bool(numbers) and origins <= set(_KNOWN) and not numbers <= {0.0, 1.0}
        return self.is_sure and not is_given and not given.holds(self.text)


def _assumptions(code: str) -> list[_Assumption]:
    """Return what comments say is assumed."""
    lines = code.splitlines()
    blank = [number for number, line in enumerate(lines, 1) if not line.strip()]
    found = []
    for comment in comments_in(code):
        if match := _ASSUMING.search(comment.string):
            text = (match[2] or comment.string).strip(_AROUND)[:_MAX_CHARS]
            if text.casefold() in NOTHING:
                continue
            first = comment.start[0]
            end = next((number for number in blank if number > first), len(lines) + 1)
            is_sure = bool(match[1]) and not _READING.search(code)
            found.append(_Assumption(text, frozenset(range(first, end)), is_sure))
    return found


def _lines_of_own_values(node: ast.Assign, given: Given) -> Iterator[int]:
    """Yield the line of an assignment of plain values that nobody gave, even if they follow from others."""
    parts = [*walk(node.value)]
    if any(isinstance(part, ast.Call | ast.Subscript) for part in parts):
        return
    constants = [part.value for part in parts if isinstance(part, ast.Constant)]
    numbers = [one for one in constants if isinstance(one, int | float) and not isinstance(one, bool)]
    if any(given.origin(float(one)) not in (Origin.GIVEN, Origin.KNOWN) for one in numbers):
        yield node.lineno


def _own_dates(tree: ast.AST, given: Given) -> list[str]:
    """Return the days that nobody named, but for those that a program may choose."""
    days = [text for text in texts_in(tree) if _DAY.fullmatch(text)]
    days += [day for call in nodes(tree, ast.Call) for day in _days_of(call)]
    return [day for day in days if not _BORDER.search(day) and not given.states_digits(int(day[-2:]))]


def _days_of(call: ast.Call) -> Iterator[str]:
    """Yield the day of a call such as `date(2020, 10, 15)`."""
    match call.func:
        case ast.Name(id=name) | ast.Attribute(attr=name) if name in _DATES:
            numbers = _numbers_of(call)
            if len(numbers) > 2 and all(0 < number < _MAX_DATE_PART for number in numbers[:3]):
                yield "{:04.0f}-{:02.0f}-{:02.0f}".format(*numbers)
