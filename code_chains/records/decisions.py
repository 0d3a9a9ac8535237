"""What a check or a person decides about a program, in whichever form it is said."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from code_chains.errors import ConfigurationError
from code_chains.records.answers import Problem

REFUSED = "It was refused. Write another program."
"""What a check says that gives no reason."""


def read_result(result: Any, name: str) -> list[Problem]:
    """Return what a check found, in whichever form it says so.

    Invariant: a result that cannot be understood is an error, so that it never lets a program run.

    Args:
        result: What the check returned.
        name: Its name.

    Raises:
        ConfigurationError: It is neither a decision nor problems.
    """
    if isinstance(result, tuple) and len(result) == 2 and isinstance(result[0], bool):
        is_allowed, reason = result
        return [] if is_allowed else refusal(name, reason)
    if result is None or result is True:
        return []
    if result is False:
        return refusal(name, None)
    items = [result] if isinstance(result, str | Problem) else result
    items = list(items) if isinstance(items, Iterator) else items
    is_list = isinstance(items, list | tuple | set | frozenset)
    if not is_list or any(isinstance(item, bool) for item in items):
        raise _unknown_result(name, result)
    return [_to_problem(item, name) for item in items]


def refusal(name: str, reason: object) -> list[Problem]:
    """Return problems that keep a program from running, for the reasons that a check gave, if any."""
    reasons = [reason] if isinstance(reason, str | Problem) else reason
    items = reasons if isinstance(reasons, list | tuple | set | frozenset) else []
    problems = [replace(_to_problem(item, name), severity="error") for item in items if item]
    return problems or [Problem(name, REFUSED)]


def _to_problem(item: object, name: str) -> Problem:
    if isinstance(item, Problem) and item.severity in ("error", "advice"):
        return item
    if isinstance(item, str) and item:
        return Problem(name, item)
    raise _unknown_result(name, item)


def _unknown_result(name: str, result: object) -> ConfigurationError:
    if inspect.iscoroutine(result):
        result.close()
    return ConfigurationError(
        "checks",
        result,
        f"a check {name!r} that returns True, False, (False, reason), a reason, or a list of problems",
    )
