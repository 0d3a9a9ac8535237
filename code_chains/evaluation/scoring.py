"""Whether an answer is right: its value or output compared with what is expected."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from datetime import date, datetime
from itertools import chain, islice, repeat
from typing import Any
from unicodedata import normalize

from code_chains.analysis.parsing import UNREADABLE, parse
from code_chains.evaluation.cases import Expectation
from code_chains.evaluation.notations import (
    as_number,
    numbers_in_other_forms,
    quantity,
    shown_as,
    unit_at,
)
from code_chains.language import detect_language
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

_LABEL = re.compile(r"(?:[^:=\n]|(?<=\d):(?=\d)){1,200}[:=]\s+(?=\S)")
"""What a program writes before a value on the same line."""
_SENTENCE = re.compile(r"[^:=\n]{1,200}\s(?:is|are|was|were|ist|sind|war|est|es|è|é)\s(?=\S)")
"""What a sentence says before a value."""
_PERCENT = re.compile(
    r"\s*(?:[%٪％]|per\s?cent|pro[cz]ent|por ?cent|pour ?cent|per ?cento|процент)", re.IGNORECASE
)
_NEGATES = re.compile(
    r"\b(?:not|no|never|nicht|kein\w*|ne|pas|non|não|не|нет|değil)\b|n['’]t\b|不|ない", re.IGNORECASE
)
_YES = re.compile(
    r"yes|true|ja|wahr|oui|vrai|sí|verdadero|sì|vero|sim|verdadeiro|да|evet|はい|是|네|نعم|हाँ", re.IGNORECASE
)
_NO = re.compile(
    r"no|false|nein|falsch|non|faux|falso|não|нет|hayır|いいえ|否|不是|아니요|لا|नहीं", re.IGNORECASE
)
_ANSWERS = re.compile(rf"{_YES.pattern}|{_NO.pattern}", re.IGNORECASE)
_NOTHING = ("None", "null", "nan", "NaN", "NaT", "<NA>")
_ONE_GROUP = re.compile(r"[-+]?\d{1,3}[.,]\d{3}")
"""A number whose point or comma may stand before decimals or between thousands."""
_MAX_LITERAL_CHARS, _MAX_ITEMS = 200_000, 10_000


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
    parts = list(_parts(text))
    readings = chain.from_iterable([*readings_of(part), *shown_as(part, expected)] for part in parts)
    if any(map(is_same, repeat(expected), readings)):
        return True
    if expected is None:
        return text.strip() in _NOTHING
    if isinstance(expected, bool) or (isinstance(expected, str) and _ANSWERS.fullmatch(expected)):
        return _agrees(text, expected)
    if (number := Number.of(expected)) is None:
        return isinstance(expected, str) and _states_quantity(text, expected, query)
    if any(number.is_near(stated) for stated in _only_number(text, query)):
        return True
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
    values, unit = wanted
    numbers = [Number(_as_written(value, expected)) for value in values]
    is_share = unit == "%"
    for stated, of in _quantities(as_number(text), query):
        others = [stated, *([Number(repr(stated.value * 100))] if is_share and not of else [])]
        if of in ("", unit) and any(number.is_near(other) for number in numbers for other in others):
            return True
    return False


def _only_number(text: str, query: str) -> Iterator[Number]:
    """Yield the readings of the only number of a text besides those of its question, in any notation and with any unit."""
    for other in numbers_in_other_forms(text):
        yield Number(repr(other))
    for stated, unit in _quantities(as_number(text), query):
        yield stated
        if unit == "%":
            yield Number(repr(stated.value / 100))


def _quantities(text: str, query: str) -> Iterator[tuple[Number, str]]:
    """Yield the readings of the only number of a text besides those of its question, with its unit."""
    if match := _only_match(text, query):
        unit = "%" if _PERCENT.match(match.string, match.end()) else unit_at(match.string, match)
        for value in _values(match[0], query):
            yield Number(_as_written(value, match[0])), unit


def _values(written: str, query: str) -> list[float]:
    """Return the readings of a number: one for a question in English, in which a point is never between thousands."""
    if _ONE_GROUP.fullmatch(written) and detect_language(query) == "en":
        return [float(written.replace(",", ""))]
    return list(possible_values(written))


def _only_match(text: str, query: str) -> re.Match[str] | None:
    asked = {
        value for match in WRITTEN_NUMBER.finditer(ascii_digits(query)) for value in possible_values(match[0])
    }
    matches = [] if _NEGATES.search(text) else list(WRITTEN_NUMBER.finditer(ascii_digits(text)))
    others = [match for match in matches if asked.isdisjoint(possible_values(match[0]))] or matches
    return others[0] if len({match[0] for match in others}) == 1 else None


def _as_written(value: float, written: str) -> str:
    """Return a reading of a number with as many decimals as are written, as it agrees up to rounding."""
    decimals = len(re.split(r"[.,]", written)[-1]) if value != int(value) else 0
    return f"{value:.{decimals}f}"


def _parts(text: str) -> Iterator[str]:
    """Yield a text and, of a single line, what stands after its label, as in `Reversed 'abc': cba`."""
    yield text
    line = text.strip()
    for before in (_LABEL, _SENTENCE):
        if "\n" not in line and (label := before.match(line)):
            yield line[label.end() :].strip("'\"")
            yield line[label.end() :].rstrip(".!").strip("'\"")


def readings_of(text: str) -> Iterator[Any]:
    """Yield a text, and the data that it is as JSON or as a literal of Python."""
    yield text.strip()
    if len(text) > _MAX_LITERAL_CHARS:
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
    first, second = Number.of(expected), Number.of(stated)
    if first is not None and second is not None:
        return first.is_near(second)
    if isinstance(expected, str) and isinstance(stated, str):
        return _is_same_text(expected, stated)
    return type(expected) is type(stated) and bool(expected == stated)


def _is_same_text(expected: str, stated: str) -> bool:
    """Return whether texts are the same but for whitespace and the notation of numbers."""
    first, second = (" ".join(normalize("NFC", text).split()) for text in (expected, stated))
    if first == second:
        return True
    if NUMBER.split(first) != NUMBER.split(second):
        return False
    numbers, others = map(Number, NUMBER.findall(first)), map(Number, NUMBER.findall(second))
    return all(map(Number.is_near, numbers, others))
