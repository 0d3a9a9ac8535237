"""Tell from a program how many of the preloaded libraries it needs."""

from __future__ import annotations

import re
import sys
from collections.abc import Collection, Sequence

from code_chains.executors.guest.sandbox.config import LARGE_MODULES

_SMALL = {*sys.stdlib_module_names} - {*LARGE_MODULES}
_DYNAMIC = re.compile(r"\b(?:import_module|__import__)\b(?!\(['\"])|\brunpy\b")
_LITERAL = re.compile(r"\b(?:import_module|__import__)\(['\"](\w+)")
_NAMED = re.compile(r"\b(?:numpy|pandas|matplotlib)\b")
_DRAWING = re.compile(r"\.(?:plot|hist|boxplot|background_gradient)\b")
_FROM = re.compile(r"\bfrom[ \t]++(\w++)[\w.]*+[ \t]++import\b")
_IMPORT = re.compile(r"\bimport[ \t]+(\w[\w., \t]*)")


def imported_libraries(code: str) -> set[str] | None:
    """Return what a program seems to import besides the small modules of the standard library; None if that may be anything.

    The program is not parsed, as that takes long for some. So what it executes as text counts if it spells that out.

    Example:
        >>> imported_libraries("import math, seaborn"), imported_libraries("from math import pi")
        ({'seaborn'}, set())
    """
    code = code.replace("\\n", "\n")  # Lines of code within texts.
    if _DYNAMIC.search(code):
        return None
    names = {*_FROM.findall(code), *_NAMED.findall(code), *_LITERAL.findall(code)}
    for imported in _IMPORT.findall(_FROM.sub("", code)):
        names |= {name.strip().partition(".")[0].partition(" ")[0] for name in imported.split(",")}
    libraries = names - _SMALL - {""}
    if "pandas" in libraries and _DRAWING.search(code):  # Its frames import it themselves.
        libraries.add("matplotlib")
    return libraries


def count_libraries(imported: Collection[str] | None, preload: Sequence[str]) -> int:
    """Return how many of the preloaded libraries, from the first one, a program needs.

    Other libraries may be made of all of them. A wrong guess costs the time of an import, or a fork of a larger process.

    Args:
        imported: What it imports; None if that may be anything.
        preload: The preloaded libraries. Large modules of the standard library are loaded with the first one.

    Example:
        >>> count_libraries({"pandas"}, ("numpy", "pandas", "matplotlib.pyplot"))
        2
    """
    positions = dict.fromkeys(LARGE_MODULES, 1)
    positions |= {module.partition(".")[0]: number for number, module in enumerate(preload, start=1)}
    if imported is None or not positions.keys() >= {*imported}:
        return len(preload)
    return min(len(preload), max((positions[name] for name in imported), default=0))
