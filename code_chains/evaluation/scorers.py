"""Scorers: whether an answer is right by another measure than that of `evaluate`."""

from __future__ import annotations

import importlib
import inspect
import json
import math
from collections import Counter
from collections.abc import Callable, Mapping
from itertools import chain
from typing import Any

from code_chains.errors import ConfigurationError
from code_chains.evaluation.scoring import (
    MAX_NOTATION_CHARS,
    Stated,
    is_same,
    is_too_long,
    last_number,
    parts_of,
    readings_of,
)
from code_chains.verification.numbers import Number

Scorer = Callable[[Any, Mapping[str, Any]], bool]
"""From what is expected and the result of a chain to whether that is right."""
_NAMES = (
    '"tolerance=0.01", "set", or "module:function", naming a function of what is expected and of the result'
)


def scorer_named(name: str) -> Scorer:
    """Return a scorer by its name.

    Args:
        name: `tolerance=0.01` for numbers that differ by at most that share, the last one of an answer counts; `set` for
            items in any order; or `module:function`.

    Raises:
        ConfigurationError: There is no such scorer.
    """
    kind, _, argument = name.partition("=")
    if kind == "tolerance":
        return _within(_number(name, argument))
    if name == "set":
        return _has_same_items
    module, _, function = name.partition(":")
    try:
        found: Scorer = getattr(importlib.import_module(module), function)
        _check_arguments(found)
    except (ImportError, AttributeError, ValueError, TypeError) as error:
        raise ConfigurationError("scorer", name, f"{_NAMES} ({error})") from error
    return found


def _check_arguments(function: Scorer) -> None:
    """Raise a TypeError unless a function takes two arguments, or does not say what it takes."""
    try:
        signature = inspect.signature(function)
    except ValueError:
        return
    signature.bind(None, {})


def _number(name: str, text: str) -> float:
    try:
        share = float(text)
    except ValueError:
        raise ConfigurationError("scorer", name, _NAMES) from None
    if not 0 <= share < math.inf:
        raise ConfigurationError("scorer", name, _NAMES, because="the tolerance must be a number from 0 on")
    return share


def _within(share: float) -> Scorer:
    def score(expected: Any, result: Mapping[str, Any]) -> bool:
        stated = Stated.by(result)
        text = json.dumps(stated.value, ensure_ascii=False) if stated.has_value else stated.output
        wanted = Number.of(expected)
        return wanted is not None and any(
            math.isclose(float(number.value), float(wanted.value), rel_tol=share, abs_tol=0.0)
            for number in last_number(text[-MAX_NOTATION_CHARS:], stated.query)
        )

    return score


def _has_same_items(expected: Any, result: Mapping[str, Any]) -> bool:
    stated = Stated.by(result)
    parts = [stated.output] if is_too_long(stated.output, expected) else parts_of(stated.output)
    readings = chain.from_iterable(map(readings_of, parts))
    for items in [stated.value] if stated.has_value else readings:
        if isinstance(items, str):
            items = items.replace(",", "\n").split("\n")
        elif isinstance(items, set | frozenset):
            items = [list(item) if isinstance(item, tuple) else item for item in items]
        if isinstance(items, list) and isinstance(expected, list) and _are_same(expected, items):
            return True
    return False


def _are_same(expected: list[Any], items: list[Any]) -> bool:
    """Return whether lists have the same items, each as often."""
    if len(expected) != len(items):
        return False
    counts = Counter[int]()
    for item in items:
        found = next(
            (index for index, other in enumerate(expected) if is_same(other, item) and not counts[index]),
            None,
        )
        if found is None:
            return False
        counts[found] += 1
    return True
