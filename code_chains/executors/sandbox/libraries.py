"""Tell from a program whether it needs the preloaded libraries."""

from __future__ import annotations

import re
import sys

from code_chains.executors.sandbox.inside.config import LARGE_MODULES

__all__ = ["uses_libraries"]

_SMALL = {*sys.stdlib_module_names} - {*LARGE_MODULES}
_DYNAMIC = re.compile(r"\b(?:numpy|pandas|matplotlib|import_module|__import__|exec|eval|runpy)\b")
_FROM = re.compile(r"\bfrom[ \t]+(\w+)[\w.]*[ \t]+import\b")
_IMPORT = re.compile(r"\bimport[ \t]+(\w[\w., \t]*)")


def uses_libraries(code: str) -> bool:
    """Return whether a program seems to import anything besides the small modules of the standard library.

    What it imports may be made of the preloaded libraries. A wrong answer costs the time of an import, or a fork of a
    larger process, and is never wrong otherwise. The program is not parsed, as that takes long for some.

    Example:
        >>> uses_libraries("import math, seaborn"), uses_libraries("from math import pi")
        (True, False)
    """
    if _DYNAMIC.search(code):
        return True
    modules = _FROM.findall(code)
    for names in _IMPORT.findall(_FROM.sub("", code)):
        modules += [name.strip().partition(".")[0].partition(" ")[0] for name in names.split(",")]
    return any(module not in _SMALL for module in modules if module)
