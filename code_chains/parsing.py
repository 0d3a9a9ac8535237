"""From source to tree, for whatever a model may have written."""

from __future__ import annotations

import ast
import warnings
from contextlib import suppress

__all__ = ["UNREADABLE", "parse", "syntax_tree"]

UNREADABLE = (SyntaxError, ValueError, RecursionError, MemoryError)
"""What `syntax_tree` raises."""
_TRIES = 100


def parse(code: str) -> ast.Module | None:
    """The tree of a program; None where it is no Python, or nested too deeply. It never raises, and never warns."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return syntax_tree(code)
    except UNREADABLE:
        return None


def syntax_tree(code: str) -> ast.Module:
    """The tree of a program, also while other threads parse; errors are `UNREADABLE`."""
    for _ in range(_TRIES):
        with suppress(SystemError):  # Until Python 3.12 threads share a counter, and blame each other (gh-106905).
            return ast.parse(code)
    return ast.parse(code)
