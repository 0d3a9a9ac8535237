"""Tell from a program whether it needs the preloaded libraries."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Iterator

from code_chains.analysis.parsing import parse
from code_chains.executors.sandbox.inside.config import LARGE_MODULES

__all__ = ["uses_libraries"]

_SMALL = {*sys.stdlib_module_names} - {*LARGE_MODULES}
_DYNAMIC = re.compile(r"\b(?:numpy|pandas|matplotlib)\b|\b(?:import_module|__import__|exec|eval|runpy)\b")


def uses_libraries(code: str) -> bool:
    """Return whether a program imports anything besides the small modules of the standard library, or may do so.

    What it imports may be made of the preloaded libraries. A wrong answer costs the time of an import, or a fork of a
    larger process, and is never wrong otherwise.

    Example:
        >>> uses_libraries("import math, seaborn"), uses_libraries("from math import pi")
        (True, False)
    """
    if _DYNAMIC.search(code):
        return True
    tree = parse(code)
    return tree is not None and any(name not in _SMALL for name in _imported(tree))


def _imported(tree: ast.Module) -> Iterator[str]:
    """Yield the top-level modules that are imported anywhere in a program."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield (node.module or "").partition(".")[0]
