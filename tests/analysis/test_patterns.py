"""No regular expression of the package takes long for a long text: inputs are made from the expressions themselves."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
import re
import signal
import time
from collections.abc import Iterable, Iterator
from re import _constants as constants  # type: ignore[attr-defined]
from re import _parser as parser  # type: ignore[attr-defined]
from typing import Any

import pytest

import code_chains

SIGNS = "a1 \t\n,.;:-_A\"'`<>()[]{}=+*/\\#|é中"
REPEATS = (constants.MAX_REPEAT, constants.MIN_REPEAT, constants.POSSESSIVE_REPEAT)
SEARCHES = {"search", "finditer", "findall", "sub", "subn", "split"}
CHARS, MOST_SECONDS, LEAST_SECONDS = 5000, 1.0, 0.05
BOUNDED = {
    "a few hundred characters": "inputs.pasted._ELLIPSIS inputs.pasted._ELLIPSIS_BEFORE"
    " evaluation.quantities._CHANGES_BEFORE verification.sanity.formats._BLANKS verification.sanity.formats._NO_VALUE"
    " verification.sanity.formats._UNROUNDED",
    "2,000 characters": "evaluation.scoring._NUMBERED",
    "a hint of 1,200 characters": "lessons.assembly._CALLED_HOLE lessons.fragments._OTHER lessons.fragments._PSEUDO"
    " lessons.fragments._SENTENCE",
    "what the user of this machine passes": "executors.limits._SIZE",
    "a profile of 2,500 characters": "analysis.columns._COLUMNS",
    "a file in the sandbox, with two seconds of processor time": "profiles.inside.columns._SEPARATED_DIGITS"
    " profiles.inside.dates._END_OF_DATE profiles.inside.markup._RANGE profiles.inside.numbers._NUMBER"
    " profiles.inside.trees._WIDE_CELL",
}
"""Expressions that take long and see only short texts, by the reason."""


class TooLongError(Exception):
    """A search takes longer than anybody waits."""


def expressions() -> Iterator[tuple[str, re.Pattern[str], str]]:
    """Yield the expressions of all modules with how they are used: `search`, or `match` or `fullmatch` alone."""
    for module in pkgutil.walk_packages(code_chains.__path__, "code_chains."):
        if module.name.endswith(("__main__", ".inspect_ai")):
            continue
        held = importlib.import_module(module.name)
        for name, value in vars(held).items():
            for each in value if isinstance(value, tuple | list) else (value,):
                if isinstance(each, re.Pattern) and isinstance(each.pattern, str):
                    calls = set(re.findall(rf"\b{name}\.(\w+)", inspect.getsource(held)))
                    is_anchored = calls and not calls & SEARCHES and each is value
                    used = "fullmatch" if calls == {"fullmatch"} else "match" if is_anchored else "search"
                    yield f"{module.name}.{name}".removeprefix("code_chains."), each, used


def signs_of(members: Any) -> list[str]:
    """Return signs that a set of an expression has."""
    text = "".join(sign for sign in SIGNS if re.fullmatch(_set_source(members), sign))
    return list(text[:3]) or [chr(value) for kind, value in members if kind is constants.LITERAL][:1] or ["a"]


def _set_source(members: Any) -> str:
    kinds = {
        constants.CATEGORY_DIGIT: r"\d",
        constants.CATEGORY_NOT_DIGIT: r"\D",
        constants.CATEGORY_SPACE: r"\s",
        constants.CATEGORY_NOT_SPACE: r"\S",
        constants.CATEGORY_WORD: r"\w",
        constants.CATEGORY_NOT_WORD: r"\W",
    }
    source = ""
    for kind, value in members:
        if kind is constants.NEGATE:
            source += "^"
        elif kind is constants.LITERAL:
            source += re.escape(chr(value))
        elif kind is constants.RANGE:
            source += f"{re.escape(chr(value[0]))}-{re.escape(chr(value[1]))}"
        else:
            source += kinds[value]
    return f"[{source}]"


def sample(tokens: Iterable[Any]) -> str:
    """Return a text that an expression may match, as short as its counts allow."""
    text = ""
    for kind, value in tokens:
        if kind is constants.LITERAL:
            text += chr(value)
        elif kind is constants.IN:
            text += signs_of(value)[0]
        elif kind in (constants.ANY, constants.NOT_LITERAL):
            text += "a"
        elif kind is constants.BRANCH:
            text += sample(value[1][0])
        elif kind is constants.SUBPATTERN:
            text += sample(value[3])
        elif kind is constants.ATOMIC_GROUP:
            text += sample(value)
        elif kind in REPEATS:
            text += sample(value[2]) * min(value[0], 20)
    return text


def repeated(tokens: Iterable[Any], before: str = "") -> Iterator[tuple[str, str]]:
    """Yield what may be repeated in a text, and what must be before it."""
    for kind, value in tokens:
        if kind in REPEATS:
            if value[1] > 50:
                yield before, sample(value[2])
                first, *others = value[2]
                if first[0] is constants.IN and not others:
                    yield from ((before, sign) for sign in signs_of(first[1])[1:])
                elif not others:
                    yield from ((before, sign) for sign in " 1")
            yield from repeated(value[2], before)
        elif kind is constants.BRANCH:
            for alternative in value[1]:
                yield from repeated(alternative, before)
        elif kind in (constants.SUBPATTERN, constants.ATOMIC_GROUP):
            yield from repeated(value[3] if kind is constants.SUBPATTERN else value, before)
        before += sample([(kind, value)])


def seconds(expression: re.Pattern[str], used: str, text: str, times: int = 1) -> float:
    """Return the time of a search, the least of some: other processes have their turns in between."""
    return min(_seconds_once(expression, used, text) for _ in range(times))


def _seconds_once(expression: re.Pattern[str], used: str, text: str) -> float:
    start = time.perf_counter()
    signal.setitimer(signal.ITIMER_VIRTUAL, MOST_SECONDS)
    try:
        getattr(expression, used)(text)
    except TooLongError:
        return MOST_SECONDS
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
    return time.perf_counter() - start


def is_slow(expression: re.Pattern[str], used: str) -> bool:
    """Return whether a text of twice the length takes three times as long, or longer than anybody waits."""
    tree = parser.parse(expression.pattern, expression.flags)
    for before, unit in {*repeated(tree), ("", sample(tree))}:
        for end in ("\x01", "a", "1\n"):
            text = unit * (CHARS // len(unit)) if unit else ""
            once = seconds(expression, used, f"{before}{text}{end}")
            if once < LEAST_SECONDS / 5:
                continue
            twice = seconds(expression, used, f"{before}{text}{text}{end}")
            if once >= MOST_SECONDS:
                return True
            if twice > LEAST_SECONDS and twice > 2.8 * once:
                once, twice = (
                    seconds(expression, used, f"{before}{body}{end}", 3) for body in (text, text * 2)
                )
                if twice > 2.8 * once:
                    return True
    return False


@pytest.mark.slow
@pytest.mark.timeout(1200)
def test_no_expression_takes_long_for_a_long_text() -> None:
    def stop(*_: object) -> None:
        raise TooLongError

    bounded = set(" ".join(BOUNDED.values()).split())
    assert bounded <= {name for name, *_ in expressions()}
    before = signal.signal(signal.SIGVTALRM, stop)
    try:
        slow = {name for name, each, used in expressions() if name not in bounded and is_slow(each, used)}
    finally:
        signal.signal(signal.SIGVTALRM, before)
    assert not slow
