"""From source to tree, for whatever a model may have written."""

from __future__ import annotations

import ast
import warnings

__all__ = ["parse"]


def parse(code: str) -> ast.Module | None:
    """The tree of a program; None where it is no Python, or nested too deeply. It never raises, and never warns."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            return ast.parse(code)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None
