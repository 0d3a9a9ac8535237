"""Whether an answer is right: its value or output compared with what is expected."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

from code_chains.analysis.parsing import UNREADABLE, parse
from code_chains.evaluation.cases import Expectation
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
_MAX_LITERAL_CHARS = 200_000


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
    readings = chain.from_iterable(map(readings_of, _parts(text)))
    if any(map(is_same, repeat(expected), readings)):
        return True
    if isinstance(expected, bool):
        return (_YES if expected else _NO).fullmatch(text.strip().strip(".!")) is not None
    if (number := Number.of(expected)) is None:
        return False
    if any(number.is_near(stated) for stated in _only_number(text, query)):
        return True
    wanted = Outcome.from_text(number.text, query)
    return any(Outcome.from_text(text, query).is_equivalent(wanted) for text in english_notations(text))


def _only_number(text: str, query: str) -> Iterator[Number]:
    """Yield the readings of the only number of a text besides those of its question, in any notation and with any unit."""
    asked = {
        value for match in WRITTEN_NUMBER.finditer(ascii_digits(query)) for value in possible_values(match[0])
    }
    matches = [] if _NEGATES.search(text) else list(WRITTEN_NUMBER.finditer(ascii_digits(text)))
    others = [match for match in matches if asked.isdisjoint(possible_values(match[0]))] or matches
    if len({match[0] for match in others}) != 1:
        return
    match = others[0]
    for value in possible_values(match[0]):
        yield Number(_as_written(value, match[0]))
        if _PERCENT.match(match.string, match.end()):
            yield Number(repr(value / 100))


def _as_written(value: float, written: str) -> str:
    """Return a reading of a number with as many decimals as are written, as it agrees up to rounding."""
    decimals = len(re.split(r"[.,]", written)[-1]) if value != int(value) else 0
    return f"{value:.{decimals}f}"


def _parts(text: str) -> Iterator[str]:
    """Yield a text and, of a single line, what stands after its label, as in `Reversed 'abc': cba`."""
    yield text
    line = text.strip()
    if "\n" not in line and (label := _LABEL.match(line)):
        yield line[label.end() :].strip("'\"")


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
        with suppress(*UNREADABLE, TypeError):
            yield _plain(ast.literal_eval(tree.body[0].value))


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
    first, second = " ".join(expected.split()), " ".join(stated.split())
    if first == second:
        return True
    if NUMBER.split(first) != NUMBER.split(second):
        return False
    numbers, others = map(Number, NUMBER.findall(first)), map(Number, NUMBER.findall(second))
    return all(map(Number.is_near, numbers, others))
