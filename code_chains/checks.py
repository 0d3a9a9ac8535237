"""Static checks: they read a program before it runs. Advice for the model, never the boundary; that is the sandbox.

A check is any function `code -> list of Problem`. Those that take options are made by calling them:
`checks=[parses, names_defined, shorter_than(80)]`.
"""

from __future__ import annotations

import ast
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import cast

from code_chains.errors import ConfigurationError
from code_chains.state import Problem

__all__ = ["POLICIES", "Check", "find_problems", "names_defined", "parses", "resolve_checks", "shorter_than"]

Check = Callable[[str], list[Problem]]


def parses(code: str) -> list[Problem]:
    """The program is Python that this interpreter can compile."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile(code, "<code>", "exec", dont_inherit=True, flags=ast.PyCF_ALLOW_TOP_LEVEL_AWAIT)
    except SyntaxError as error:
        return [Problem("parses", f"{type(error).__name__}: {error.msg}", error.lineno)]
    except (ValueError, RecursionError, MemoryError, OverflowError) as error:
        return [Problem("parses", f"The program cannot be compiled: {error or type(error).__name__}")]
    return []


def names_defined(code: str) -> list[Problem]:
    """Every name that is used is defined somewhere; found by pyflakes."""
    from pyflakes import checker, messages

    fatal = (messages.UndefinedName, messages.UndefinedLocal, messages.ReturnOutsideFunction)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = checker.Checker(ast.parse(code), filename="<code>").messages
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return []  # That it does not parse is for `parses` to say.
    return [Problem("names_defined", message.message % message.message_args, message.lineno)
            for message in found if isinstance(message, fatal)]  # fmt: skip


def shorter_than(lines: int) -> Check:
    """Make a check that refuses programs longer than a number of lines.

    Args:
        lines: The largest number of lines that is still allowed.
    """
    if isinstance(lines, bool) or not isinstance(lines, int) or lines < 1:
        raise ConfigurationError("lines", lines, "a whole number of lines, at least 1")

    def check(code: str) -> list[Problem]:
        count = len(code.splitlines())
        message = f"The program has {count} lines; at most {lines} are allowed"
        return [Problem("shorter_than", message)] if count > lines else []

    return check


STANDARD: tuple[Check, ...] = (parses, names_defined, shorter_than(2000))
POLICIES: dict[str, tuple[Check, ...]] = {"none": (), "standard": STANDARD}


def resolve_checks(checks: str | Check | Sequence[Check]) -> tuple[Check, ...]:
    """Turn a policy's name, one check or several into a tuple of checks.

    Raises:
        ConfigurationError: It is none of these.
    """
    if isinstance(checks, str):
        if checks not in POLICIES:
            raise ConfigurationError("checks", checks, f"one of {sorted(POLICIES)}, or a list of functions")
        return POLICIES[checks]
    several = cast("tuple[Check, ...]", tuple(checks) if isinstance(checks, Sequence) else (checks,))
    if not all(callable(check) for check in several):
        raise ConfigurationError("checks", checks, f"one of {sorted(POLICIES)}, or functions from code to problems")
    return several


def find_problems(code: str, checks: Sequence[Check], *, given: Iterable[str] = ()) -> list[Problem]:
    """Run checks in order over a program; those after one that found something still run, duplicates go.

    Args:
        code: The program.
        checks: Functions from code to problems.
        given: Names that will exist when the program starts; that they are undefined is no problem.
    """
    found: dict[Problem, None] = {}
    for check in checks:
        found.update(dict.fromkeys(check(code) or ()))
    known = {f"undefined name {name!r}" for name in given}
    return [problem for problem in found if problem.message not in known]
