"""Whether an answer is right: its value or output compared with what is expected."""

from __future__ import annotations

import ast
import json
import re
from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from itertools import chain, islice, repeat
from typing import Any
from unicodedata import normalize

from code_chains.analysis.parsing import UNREADABLE, parse
from code_chains.evaluation.cases import Expectation
from code_chains.evaluation.notations import has_same_codes, is_code, shown_as
from code_chains.evaluation.quantities import (
    NEGATES,
    as_number,
    exact,
    is_by_itself,
    measured,
    numbers_in_other_forms,
    per_hundred,
    quantity,
)
from code_chains.evaluation.units import is_same_unit
from code_chains.language import detect_language
from code_chains.language.vocabulary import pattern, vocabulary
from code_chains.state import as_json
from code_chains.verification.comparison import Outcome
from code_chains.verification.numbers import (
    NUMBER,
    WRITTEN_NUMBER,
    Number,
    ascii_digits,
    english_notations,
    possible_values,
)

_LABEL = re.compile(r"(?:[^:=\n]|(?<=\d):(?=\d)){1,200}(?<![!<>])[:=]\s+(?=\S)")
"""What a program writes before a value on the same line."""
_SENTENCE = re.compile(r"[^:=\n]{1,200}\s(?:is|are|was|were|ist|sind|war|est|es|è|é)\s(?=\S)")
"""What a sentence says before a value."""
_WORDS = vocabulary("scoring")
_YES = pattern(_WORDS["yes"])
_NO = pattern(_WORDS["no"])
_ANSWERS = re.compile(rf"{_YES.pattern}|{_NO.pattern}", re.IGNORECASE)
_NOTHING = ("None", "null", "nan", "NaN", "NaT", "<NA>")
_MARKED = re.compile(
    r"```\w*\n(.*?)\n?```|\\boxed\{([^{}]*)\}|#{1,6}\s+(.*)|\*\*([^*]*)\*\*|\$([^$]*)\$|`([^`]*)`", re.DOTALL
)
"""Code, TeX, a heading, bold text."""
_NUMBERED = re.compile(r"[^:\n]{0,200}\d\)?:\s+[^\d\n]+")
"""A label that ends with a number, such as that of a question, before words."""
_ONE_GROUP = re.compile(r"[-+]?\d{1,3}[.,]\d{3}")
"""A number whose point or comma may stand before decimals or between thousands."""
_OF_OTHER_BASE = re.compile(r"[-+]?0[xob]\w+", re.IGNORECASE)
_MAX_LITERAL_CHARS, _MAX_ITEMS = 200_000, 10_000
MAX_NOTATION_CHARS = 2000
"""Of an answer that is longer than what is expected by more than this no other notation is tried: expressions take long."""
_MAX_MARKS = 20


@dataclass(frozen=True)
class Stated:
    """What an answer states.

    Attributes:
        query: The question.
        output: The output of the program.
        ok: Whether there is an answer: the verdict is not `failed`.
        result: The last value as the program shows it; None if it has none.
        value: The value as JSON data, with an answer type.
        has_value: Whether there is an answer type.
    """

    query: str
    output: str
    ok: bool
    result: str | None = None
    value: Any = None
    has_value: bool = False

    @classmethod
    def by(cls, result: Mapping[str, Any]) -> Stated:
        """Return what the result of a chain states."""
        execution = result.get("execution")
        return cls(
            query=str(result.get("query") or ""),
            output=str(result.get("output") or ""),
            ok=bool(result["verdict"].ok),
            result=None if execution is None else execution.result,
            value=as_json({"value": result.get("value")})["value"],
            has_value="value" in result,
        )


def is_right(stated: Stated, expectation: Expectation) -> bool:
    """Return whether an answer is right; the judge decides elsewhere.

    An answer whose verdict is `failed` is not given to anyone, so it is never right, unless none is expected. With an
    answer type the value decides, else the output as a whole or the last value. Numbers may have any notation, and
    agree up to rounding to two decimals or more; everything else must be the same, but for a label before it.
    """
    if expectation.by == "pattern":
        return stated.ok and re.search(str(expectation.value), stated.output) is not None
    if not stated.ok:
        return expectation.value is None
    if stated.has_value:
        return is_same(expectation.value, stated.value)
    if _states(stated.output, expectation.value, stated.query):
        return True
    return stated.result is not None and _states(stated.result, expectation.value, stated.query)


def _states(text: str, expected: Any, query: str) -> bool:
    """Return whether a text states what is expected."""
    if is_too_long(text, expected):
        return any(map(is_same, repeat(expected), readings_of(text)))
    has_commas = detect_language(query) != "en"
    readings = chain.from_iterable(
        [*readings_of(part), *shown_as(part, expected, has_commas=has_commas)] for part in parts_of(text)
    )
    if any(map(is_same, repeat(expected), readings)):
        return True
    if expected is None:
        return text.strip() in _NOTHING
    if isinstance(expected, bool) or (isinstance(expected, str) and _ANSWERS.fullmatch(expected)):
        return _agrees(text, expected)
    if isinstance(expected, str) and is_code(expected):
        match = _only_match(ascii_digits(text), query)
        return match is not None and match[0] == expected.strip()
    if (number := _number_expected(expected)) is not None:
        return _states_number(text, number, query)
    return isinstance(expected, str) and _states_quantity(text, expected, query)


def is_too_long(text: str, expected: Any) -> bool:
    """Return whether a text is compared as it is only, as other notations of it would take long to find."""
    return len(text) > MAX_NOTATION_CHARS + 2 * len(str(expected))


def _number_expected(expected: Any) -> Number | None:
    """Return the number that is expected, of a text also a fraction; None of anything else."""
    if not isinstance(expected, str) or any(map(str.isalpha, expected)):
        return Number.of(expected)
    fractions = map(Number, map(repr, numbers_in_other_forms(expected)))
    return Number.of(as_number(expected)) or next(fractions, None)


def _states_number(text: str, number: Number, query: str) -> bool:
    """Return whether a text states a number, in any notation and with any unit; that of a label alone is none."""
    if _NUMBERED.fullmatch(text.strip()):
        return False
    if any(number.is_near(stated) for stated in only_number(text, query)):
        return True
    text = as_number(text, query)
    if not all(map(is_by_itself, WRITTEN_NUMBER.finditer(text))):
        return False
    wanted = Outcome.from_text(number.text, query)
    return any(Outcome.from_text(text, query).is_equivalent(wanted) for text in english_notations(text))


def _agrees(text: str, expected: bool | str) -> bool:
    """Return whether a text begins with a yes, or with a no, as is expected."""
    is_yes = expected if isinstance(expected, bool) else _YES.fullmatch(expected) is not None
    first = re.split(r"[.,!;:]", text.strip(), maxsplit=1)[0]
    return (_YES if is_yes else _NO).fullmatch(first.strip()) is not None


def _states_quantity(text: str, expected: str, query: str) -> bool:
    """Return whether a text states a number with its unit, or without any."""
    if (wanted := quantity(expected)) is None:
        return False
    numbers, unit = wanted
    for stated, of in _quantities(as_number(text, query), query):
        others = [stated]
        if unit == "%" and not of:
            others.append(Number(repr(stated.value * 100)))
        is_unit = not of or is_same_unit(of, unit)
        if is_unit and any(number.is_near(other) for number in numbers for other in others):
            return True
    return False


def only_number(text: str, query: str) -> Iterator[Number]:
    """Yield the readings of the only number of a text besides those of its question, in any notation and with any unit."""
    for other in numbers_in_other_forms(text, query):
        yield Number(repr(other))
    yield from _as_numbers(_quantities(as_number(text, query), query))


def last_number(text: str, query: str) -> Iterator[Number]:
    """Yield the readings of the last number of a text, in any notation and with any unit."""
    yield from map(Number, map(repr, numbers_in_other_forms(text, query)))
    text = as_number(text, query)
    matches = [*deque(WRITTEN_NUMBER.finditer(text), 1), *deque(NUMBER.finditer(text), 1)]
    if matches:
        last = max(matches, key=re.Match.end)
        yield from _as_numbers(measured(last, _values(last[0], query)))


def _as_numbers(quantities: Iterable[tuple[Number, str]]) -> Iterator[Number]:
    """Yield numbers without their units; those in percent also as shares."""
    for stated, unit in quantities:
        yield stated
        if unit == "%":
            yield per_hundred(stated)


def _quantities(text: str, query: str) -> Iterator[tuple[Number, str]]:
    """Yield the readings of the only number of a text besides those of its question, with its unit."""
    if match := _only_match(text, query):
        yield from measured(match, _values(match[0], query))


def _values(written: str, query: str) -> list[float]:
    """Return the readings of a number: one for a question in English, in which a point is never between thousands."""
    if _ONE_GROUP.fullmatch(written) and detect_language(query) == "en":
        return [float(written.replace(",", ""))]
    return list(possible_values(written))


def _only_match(text: str, query: str) -> re.Match[str] | None:
    asked = {
        value for match in WRITTEN_NUMBER.finditer(ascii_digits(query)) for value in possible_values(match[0])
    }
    matches = [] if NEGATES.search(text) else list(WRITTEN_NUMBER.finditer(ascii_digits(text)))
    others = [match for match in matches if asked.isdisjoint(possible_values(match[0]))] or matches
    return others[0] if len({match[0] for match in others}) == 1 else None


def parts_of(text: str) -> Iterator[str]:
    """Yield a text and, of a single line, what stands after its label, as in `Reversed 'abc': cba`."""
    yield text
    line = unmarked(text)
    yield line
    for before in (_LABEL, _SENTENCE):
        if "\n" not in line and (label := before.match(line)):
            yield line[label.end() :].strip("'\"")
            yield unmarked(line[label.end() :])


def unmarked(text: str) -> str:
    r"""Return a text without the marks around it: of Markdown or TeX, quotation marks, a final stop.

    Example:
        >>> [unmarked(text) for text in ("**Paris**.", "$\\boxed{7}$", "#### 7", "```json\n[1]\n```")]
        ['Paris', '7', '7', '[1]']
    """
    for _ in range(_MAX_MARKS):
        text = text.strip().rstrip(".!").strip("'\"")
        marked = _MARKED.fullmatch(text)
        if marked is None:
            break
        text = next(filter(None, marked.groups()), "")
    return text


def readings_of(text: str) -> Iterator[Any]:
    """Yield a text, and the data that it is as JSON or as a literal of Python."""
    yield text.strip()
    if len(text) > _MAX_LITERAL_CHARS or _OF_OTHER_BASE.fullmatch(text.strip()):
        return
    try:
        yield json.loads(text)
        return
    except (ValueError, RecursionError):
        pass
    tree = parse(text.strip())
    if tree is not None and len(tree.body) == 1 and isinstance(tree.body[0], ast.Expr):
        with suppress(*UNREADABLE, TypeError, ArithmeticError):
            yield _plain(_as_data(tree.body[0].value))


def _as_data(node: ast.expr) -> Any:
    """Return what the representation of a value stands for, of a literal or of common types.

    Raises:
        ValueError: It is none of these.
    """
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name), args=arguments, keywords=[]):
            return _of_type(name, [ast.literal_eval(argument) for argument in arguments])
        case ast.Attribute(attr="True_" | "False_" as name):
            return name == "True_"
    return ast.literal_eval(node)


def _of_type(name: str, arguments: list[Any]) -> Any:
    match name, arguments:
        case "date", [_, _, _]:
            return date(*arguments).isoformat()
        case "datetime", [_, _, _, *_]:
            return datetime(*arguments).isoformat(" ")
        case "Timestamp", [str() as text]:
            return text.removesuffix(" 00:00:00")
        case "Fraction", [int() as above, int() as below]:
            return above / below
        case "range", [*_]:
            return list(islice(range(*arguments), _MAX_ITEMS))
        case "frozenset" | "dict_keys" | "dict_values" | "array" | "deque", [list() | set() as items]:
            return items
    raise ValueError(name)


def _plain(data: Any) -> Any:
    """Return a literal as JSON data: tuples are lists."""
    if isinstance(data, tuple | list):
        return list(map(_plain, data))
    if isinstance(data, dict):
        return {str(key): _plain(item) for key, item in data.items()}
    return data


def is_same(expected: Any, stated: Any) -> bool:
    """Return whether data are the same but for the notation of numbers, and rounding."""
    if isinstance(expected, list) and isinstance(stated, list):
        return len(expected) == len(stated) and all(map(is_same, expected, stated))
    if isinstance(expected, dict) and isinstance(stated, dict):
        return expected.keys() == stated.keys() and all(
            is_same(expected[key], stated[key]) for key in expected
        )
    if isinstance(expected, str) and is_code(expected):
        return isinstance(stated, str) and expected.strip() == stated.strip()
    first, second = Number.of(expected), Number.of(stated)
    if first is not None and second is not None:
        return exact(first).is_near(exact(second))
    if isinstance(expected, str) and isinstance(stated, str):
        return _is_same_text(expected, stated)
    return type(expected) is type(stated) and bool(expected == stated)


def _is_same_text(expected: str, stated: str) -> bool:
    """Return whether texts are the same but for whitespace and the notation of numbers."""
    first, second = (" ".join(normalize("NFC", text).split()) for text in (expected, stated))
    if first == second:
        return True
    if NUMBER.split(first) != NUMBER.split(second) or not has_same_codes(first, second):
        return False
    numbers, others = map(Number, NUMBER.findall(first)), map(Number, NUMBER.findall(second))
    return all(map(Number.is_near, numbers, others))
