"""The values that a question states, and whether a program uses them. No model is asked.

What is in doubt counts as used: a false alarm costs a model call. A number is used as well if it was converted, such as 5 %
to 0.05, kilometres to metres, or a bound to the end of a range.
"""

from __future__ import annotations

import ast
import itertools
import math
import operator
import re
from collections.abc import Callable, Iterable, Iterator, Set
from contextlib import suppress
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from code_chains.analysis.parsing import parse
from code_chains.analysis.work import walk
from code_chains.inputs.text import folded
from code_chains.verification.numbers import (
    GROUPED_NUMBER,
    WRITTEN_NUMBER,
    ascii_digits,
    mantissa,
    possible_values,
)

_MAX_QUERY_CHARS, _MAX_CODE_CHARS = 20_000, 100_000
_MAX_NAMED = 5
_MIN_DATA_LINES = 3
"""Lines with numbers from which on they are a list."""
_MIN_DIGITS = 3
"""Significant digits of a number that is unlikely to be background or computed in another way."""
_BARE_LIST = re.compile(r"(?<![\d.,])\d+(?:,\d+){2,}(?![\d.,])")
_YEARS = range(1500, 2200)
_FACTORS = (1.0, 60.0, 3600.0, 24.0, 86400.0, 7.0, 12.0, 365.0)
"""What numbers are multiplied with, or divided by, besides powers of ten: units of time and dozens."""
_QUOTED = re.compile(
    r"(?<![^\W_])'([^'\n]{1,300})'(?![^\W_])|\"([^\"\n]{1,300})\"|“([^”\n]{1,300})”|„([^“”\n]{1,300})[“”]"
    r"|«\s?([^»\n]{1,300}?)\s?»|‘([^’\n]{1,300})’|「([^」\n]{1,300})」"
)
_FILE = re.compile(
    r"(?<![\w/.-])[\w-]+\.(?:csv|tsv|jsonl?|ndjson|xlsx?|parquet|db|sqlite3?|txt|xml|ya?ml|html|log)\b"
)
_ISO_DATE = re.compile(r"(?<!\d)([12]\d{3})[-/.]\d{1,2}[-/.]\d{1,2}(?!\d)")
_DOTTED_DATE = re.compile(r"(?<!\d)\d{1,2}[-/.]\d{1,2}[-/.]([12]\d{3})(?!\d)")
_WRITTEN_DATE = re.compile(
    r"(?<!\d)\d{1,2}(?:st|nd|rd|th|er|\.|º)?\s(?:(?:of|de|di|del)\s)?[^\W\d]{3,12}\.?,?\s(?:(?:de|del)\s)?([12]\d{3})(?!\d)"
    r"|[^\W\d]{3,9}\.?\s\d{1,2}(?:st|nd|rd|th)?,?\s([12]\d{3})(?!\d)|([12]\d{3})\s?年\s?\d{1,2}\s?月\s?\d"
)
"""Whole dates; of a date in words alone the year may be background, of a whole one the group must be used."""
_DATES = re.compile(r"date|calendar|timestamp|strptime|timedelta|arrow|pendulum")
_REMARK = re.compile(r"\([^()\n]*\)")
_TELEPHONE = re.compile(r"\+\d{1,3}[ ()/\d-]{6,20}\d")
_CLOCK = re.compile(r"(?<!\d)\d{1,2}:\d{2}(?::\d{2})?(?!\d)")
_BACKGROUND = re.compile(
    r"(?:\bversion|\bpython|\bv\.?|\bno\.|#|\bnr\.|\bpage|\bseite|\bstep|\bquestion|\btel\.?|\bphone|\bcall|\+)\s*$",
    re.I,
)
"""What stands before a number that names something rather than being computed with."""
_OPERATIONS: dict[type[ast.operator], Callable[[float, float], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}
_OPENING = frozenset(["glob", "iglob", "rglob", "listdir", "scandir", "iterdir", "walk", "argv", "stdin"])
"""Names with which a program takes values from elsewhere."""
_PLAIN = re.compile(r"\d{1,15}(?:\.\d{1,15})?")
_FOR_EXAMPLE = re.compile(
    r"(?:\blike|\bsuch as|\be\.\s?g\.,?|\bfor (?:example|instance),?|\b(?:zum Beispiel|z\.\s?B\.|wie|por ejemplo|como"
    r"|par exemple|p\. ex\.|comme|per esempio|come|por exemplo|например)):?\s*$",
    re.IGNORECASE,
)
_FORMAT = re.compile(
    r"^[^\n:]{0,60}(?:\bformat\w{0,10}|\bformato|フォーマット|形式|格式|형식|формат\w{0,3})\s*[:：]|^\W{0,3}@\w+\[",
    re.IGNORECASE | re.MULTILINE,
)
"""What begins the clause on the format of an answer."""
_MIN_TEXT_CHARS = 4
_CALL = re.compile(r"[\w.]+\.\w+\([^()]*\)")
_KINDS = frozenset(["average", "mean", "median", "total", "overall"])
"""Words before the name of a quantity, which a program says by a function."""
_CODE = re.compile(r"```.*?(?:```|\Z)", re.DOTALL)


@dataclass
class _Literals:
    """What a program spells out.

    Attributes:
        constants: Its numbers, without signs.
        numbers: The same, what is computed from two of them, and those that stand in its texts.
        texts: Its texts and names, folded.
        is_open: Whether it may take values from elsewhere, such as all files of a folder.
    """

    constants: list[float] = field(default_factory=list)
    numbers: set[float] = field(default_factory=set)
    texts: list[str] = field(default_factory=list)
    is_open: bool = False

    @cached_property
    def text(self) -> str:
        """All texts, joined."""
        return "\n".join(self.texts)

    @cached_property
    def has_dates(self) -> bool:
        """Whether it computes with dates; without them, a year may be known by the days of its months alone."""
        return _DATES.search(self.text) is not None

    @cached_property
    def digits(self) -> str:
        """All texts without blanks, such as those between groups of digits."""
        return self.text.replace(" ", "")

    @cached_property
    def mantissas(self) -> set[float]:
        """What its numbers are, but for powers of ten."""
        return set(map(mantissa, self.numbers))

    @cached_property
    def converted(self) -> set[float]:
        """The same, with what they are in other units of time."""
        return _converted(self.numbers)


def unused_values(query: str, code: str, *, all_numbers: bool = False) -> list[str]:
    """Return values that a question states and its program does not use, as they are written; at most five.

    Only what is unlikely to be background counts: numbers of three significant digits or more, text in quotation marks and
    names of files. Code and lists over several lines are not looked at.

    Args:
        query: The question.
        code: The program; of one that does not parse nothing is said.
        all_numbers: Whether shorter numbers count as well.

    Example:
        >>> unused_values("How much is 17 percent of 2350?", "print(0.17 * 2530)")
        ['2350']
        >>> unused_values("How much is 17.5 percent of 2350?", "print(0.175 * 2350)")
        []
    """
    tree = _tree(code)
    text = _without_data(without_format(_CODE.sub(" ", query)))
    if tree is None or len(text) > _MAX_QUERY_CHARS:
        return []
    literals = _literals(tree)
    if literals.is_open:
        return []
    return _first(_unused(text, literals, min_digits=1 if all_numbers else _MIN_DIGITS))


def _unused(text: str, literals: _Literals, *, min_digits: int) -> Iterator[str]:
    years = _stated_years(text) if literals.has_dates else ()
    for number in itertools.chain(years, _stated_numbers(text, min_digits)):
        # What is written like 12 500 may be a list, such as 128 131 119.
        parts = number.split()
        if not _is_used(number, literals) and not all(_is_used(part, literals) for part in parts):
            yield number
    for quoted in _stated_texts(text):
        if not _occurs(quoted, literals):
            yield quoted


def _first(values: Iterable[str]) -> list[str]:
    """Return the first few values, each once."""
    return list(itertools.islice(dict.fromkeys(values), _MAX_NAMED))


def _values(text: str) -> set[float]:
    """Return all that the numbers of a text may mean."""
    values = set[float]()
    for match in WRITTEN_NUMBER.finditer(ascii_digits(text)):
        values.update(map(abs, possible_values(match[0])))
    return values


def _tree(code: str) -> ast.Module | None:
    return parse(code) if len(code) <= _MAX_CODE_CHARS else None


# -- the question --------------------------------------------------------------------------------------------


def without_format(text: str) -> str:
    r"""Return a question without the clause that states the format of its answer, whose words are placeholders.

    Example:
        >>> without_format("What is the mean of 2 and 4?\nFormat: @mean[value], where value is a number")
        'What is the mean of 2 and 4?\n'
    """
    clause = _FORMAT.search(text)
    if clause is None:
        return text
    before = text[: clause.start()]
    return before if before.strip() else text[clause.end() :].partition("\n\n")[2]


def _without_data(text: str) -> str:
    """Return a question without its lines of data, of which an answer may need just a few."""
    lines = text.splitlines()
    plain = [line for line in lines if not any(map(str.isdigit, line))]
    return text if len(lines) - len(plain) < _MIN_DATA_LINES else "\n".join(plain)


def _stated_years(text: str) -> Iterator[str]:
    """Yield the years of whole dates in a question."""
    remarkless = _REMARK.sub(" ", ascii_digits(text))
    for pattern in (_ISO_DATE, _DOTTED_DATE, _WRITTEN_DATE):
        for match in pattern.finditer(remarkless):
            yield next(filter(None, match.groups()))


def _stated_numbers(text: str, min_digits: int) -> Iterator[str]:
    """Yield the numbers of a question that its program must use, without years."""
    text = _BARE_LIST.sub(_with_blanks, ascii_digits(text))
    for pattern in (_ISO_DATE, _DOTTED_DATE, _TELEPHONE, _CLOCK, _FILE):
        text = pattern.sub(" ", text)
    for match in WRITTEN_NUMBER.finditer(text):
        written = match[0].strip()
        is_year = written.isdigit() and int(written[:9]) in _YEARS
        is_named = _BACKGROUND.search(text, max(0, match.start() - 20), match.start())
        is_said = len(_digits(written)) >= min_digits and not is_year and not is_named
        if is_said and not _is_joined(text, match):
            yield written


def _with_blanks(listed: re.Match[str]) -> str:
    """Return numbers between bare commas with blanks between them, unless the commas may separate thousands."""
    return listed[0] if GROUPED_NUMBER.fullmatch(listed[0]) else listed[0].replace(",", ", ")


def _is_joined(text: str, match: re.Match[str]) -> bool:
    """Return whether a number is part of a name, a telephone number, a version or an address."""
    after = text[match.end() : match.end() + 2]
    before = text[max(0, match.start() - 2) : match.start()]
    return bool(re.match(r"[-/.:_][\d\w]|\w", after) or re.search(r"[\w)][-/.:_]$", before))


def _stated_texts(text: str) -> Iterator[str]:
    """Yield quoted texts and names of files."""
    for match in _QUOTED.finditer(text):
        quoted = next(filter(None, match.groups()))
        is_example = _FOR_EXAMPLE.search(text, max(0, match.start() - 20), match.start())
        is_call = _CALL.fullmatch(quoted)
        if len(_words(quoted)) >= _MIN_TEXT_CHARS and not is_example and not is_call:
            yield quoted
    yield from _FILE.findall(text)


def _digits(written: str) -> str:
    """Return the significant digits of a number."""
    return re.sub(r"\D", "", written.lower().partition("e")[0]).lstrip("0").rstrip("0")


# -- the program ---------------------------------------------------------------------------------------------


def _literals(tree: ast.Module) -> _Literals:
    found = _Literals()
    for node in walk(tree):
        if isinstance(node, ast.Constant):
            _add_constant(node.value, found)
        elif isinstance(node, ast.Name | ast.Attribute | ast.arg | ast.keyword):
            name = str(getattr(node, "id", None) or getattr(node, "attr", None) or node.arg)  # type: ignore[union-attr]
            found.texts.append(_words(name))
            found.is_open |= name in _OPENING
        elif isinstance(node, ast.BinOp):
            found.numbers |= set(_computed(node))
    found.numbers.update(found.constants)
    return found


def _add_constant(value: object, found: _Literals) -> None:
    if isinstance(value, int | float) and not isinstance(value, bool):
        found.constants += map(abs, _as_float(value))
        with suppress(ValueError):  # An integer of more than 4300 digits, which no question has.
            found.texts.append(repr(value))
    elif isinstance(value, str | bytes):
        text = value if isinstance(value, str) else value.decode(errors="replace")
        found.texts.append(_words(text))
        found.numbers |= _values(text)
        found.numbers.update(map(float, _PLAIN.findall(ascii_digits(text))))


def _computed(node: ast.BinOp) -> Iterator[float]:
    """Yield the value of an operation on two numbers, such as `25 * 60` or `10**6`."""
    left, right = _constant(node.left), _constant(node.right)
    if left is None or right is None or (abs(right) > 64 and isinstance(node.op, ast.Pow)):
        return
    operation = _OPERATIONS.get(type(node.op))
    if operation is None:
        return
    with suppress(ArithmeticError, ValueError):
        value = operation(left, right)
        if isinstance(value, float) and math.isfinite(value):
            yield abs(value)


def _constant(node: ast.expr) -> float | None:
    if isinstance(node, ast.Constant) and isinstance(node.value, int | float):
        return next(_as_float(node.value), None)
    return None


def _as_float(value: float) -> Iterator[float]:
    try:
        number = float(value)
    except OverflowError:
        return
    if math.isfinite(number):
        yield number


def _is_used(written: str, literals: _Literals) -> bool:
    if re.sub(r"\D", "", written) in literals.digits:
        return True
    values = map(abs, possible_values(written))
    return any(_is_derived(value, literals.converted, literals.mantissas) for value in values)


def _is_derived(value: float, converted: Set[float], mantissas: Set[float]) -> bool:
    """Return whether a number is among others, or was converted from one of them, or to one of them.

    Args:
        value: The number.
        converted: The mantissas of the others, and of their multiples in units of time.
        mantissas: The mantissas of the others alone.
    """
    if mantissa(value) in converted:
        return True
    candidates = [value + 1, abs(value - 1)] if value.is_integer() else []
    if value <= 100:  # It may be a percentage.
        candidates += [100 - value, 100 + value]
    return not mantissas.isdisjoint(map(mantissa, candidates))


def _converted(numbers: Iterable[float]) -> set[float]:
    """Return the mantissas of numbers and of their multiples in units of time."""
    pairs = list(itertools.product(numbers, _FACTORS))
    products, quotients = itertools.starmap(operator.mul, pairs), itertools.starmap(operator.truediv, pairs)
    return set(map(mantissa, itertools.chain(products, quotients)))


def _occurs(quoted: str, literals: _Literals) -> bool:
    """Return whether a text, or each of its words, stands in a program."""
    words = _words(quoted)
    named = (word for word in words.split() if word not in _KINDS)
    return words in literals.text or all(map(literals.text.__contains__, named))


def _words(text: str) -> str:
    """Return text without case, accents, punctuation and superfluous blanks."""
    return " ".join(re.findall(r"[^\W_]+", folded(text)))
