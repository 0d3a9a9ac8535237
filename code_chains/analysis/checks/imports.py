"""Checks of what a program imports."""

from __future__ import annotations

import ast
import re
import sys
from collections.abc import Callable, Collection, Iterable
from operator import attrgetter

from code_chains.analysis.dotted_names import root_of
from code_chains.analysis.parsing import names_in, texts_in
from code_chains.analysis.references import Import, Reading, read
from code_chains.analysis.work import spend, walk
from code_chains.errors import ConfigurationError
from code_chains.executors.distributions import install_advice
from code_chains.records import Problem

Check = Callable[[str], list[Problem]]
_WRITTEN = re.compile(r"(?:^|(?<=/))(\w++)(?=\.py\b|/|$)", re.MULTILINE)
"""The file, or the folder, of a module that a program seems to write itself."""
_STEPS_OF_MODULE = 1000
"""Steps that it takes to look for a module."""
_MAX_ALTERNATIVES = 10
"""Missing modules for which a similar name is looked up, as comparing takes time."""
_MISSING = {"ImportError", "ModuleNotFoundError", "Exception", "BaseException"}


def imports_only(*names: str) -> Check:
    """Make a check that refuses imports of all but some modules. `os.path` allows only that, `numpy` all below it.

    Args:
        names: Dotted names of modules that may be imported.

    Example:
        >>> [problem.message for problem in imports_only("json", "math")("import math, socket")]
        ['`socket` may not be imported; only json, math may']
    """
    check_names(names)
    allowed = {*names, "__future__"}

    def check(code: str) -> list[Problem]:
        reading = read(code)
        remedy = f"only {', '.join(names)} may" if names else "write the program without imports"
        problems = []
        for imported in reading.imports if reading else ():
            if not _is_below(imported.name.removesuffix(".*"), allowed):
                message = f"{_module_name(imported)} may not be imported; {remedy}"
                problems.append(Problem("imports_only", message, imported.line))
        return problems

    return check


def _is_below(name: str, allowed: Collection[str]) -> bool:
    return f"{name}.".startswith(tuple(map("{}.".format, allowed)))


def _module_name(imported: Import) -> str:
    return (
        "A module whose name is computed" if imported.name == "?" else f"`{imported.name.removesuffix('.*')}`"
    )


def imports_available(
    packages: Collection[str] | None = None, *, is_installed: Callable[[str], bool] | None = None
) -> Check:
    """Make a check that refuses imports of what is not there: not in the standard library, not installed here.

    It looks at this interpreter, without importing anything. Where programs run in another one, give
    `packages`, or `is_installed`. Imports inside `try` with `except ImportError` may fail, and a program may
    write a module of its own. The message names the distribution of what is missing, which may have another name.

    Args:
        packages: Further names that can be imported where the program runs.
        is_installed: Tells of a module whether it is installed where the program runs; by default, whether it is here.
            With it imports within functions and conditions, which may never run, are left alone.

    Example:
        >>> [problem.message for problem in imports_available()("import jsn")]
        ["There is no module 'jsn'; did you mean 'json'?"]
    """
    available = set(map(root_of, packages or ()))

    def check(code: str) -> list[Problem]:
        reading = read(code)
        if reading is None:
            return []
        first: dict[str, Import] = {}
        for imported in _needed(reading) if is_installed is None else _certain(reading):
            first.setdefault(root_of(imported.name), imported)
        is_there = is_installed or _is_here
        spend(_STEPS_OF_MODULE * len(first))
        missing = [root for root in first if root and not _is_available(root, available, is_there)]
        if not missing:
            return []
        written = set(_WRITTEN.findall("\n".join(texts_in(reading.tree))))
        unknown = [root for root in missing if root not in written]
        alternatives = _alternatives(unknown[:_MAX_ALTERNATIVES], available, is_there)
        return [
            Problem(
                "imports_available",
                f"There is no module {root!r}{alternatives.get(root, '')}",
                first[root].line,
            )
            for root in unknown
        ]

    return check


def _needed(reading: Reading) -> list[Import]:
    """Return the import statements whose failure the program does not handle."""
    statements = [one for one in reading.imports if isinstance(one.node, ast.Import | ast.ImportFrom)]
    return _not_within(_may_fail, statements, reading)


def _certain(reading: Reading) -> list[Import]:
    """Return those that run in any case: not within functions, which may never be called."""
    return _not_within(_may_not_run, _needed(reading), reading)


def _not_within(is_outer: Callable[[ast.AST], bool], imports: list[Import], reading: Reading) -> list[Import]:
    """Return the imports that are not within certain nodes."""
    statements = map(id, map(attrgetter("node"), imports))
    if set(map(id, reading.tree.body)).issuperset(statements):
        return imports
    within = set[int]()
    for outer in filter(is_outer, reading.nodes):
        within.update(map(id, walk(outer)))
    return [imported for imported in imports if id(imported.node) not in within]


def _may_not_run(node: ast.AST) -> bool:
    return isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef | ast.If)


def _may_fail(node: ast.AST) -> bool:
    if isinstance(node, ast.If):
        return any(
            getattr(part, "id", getattr(part, "attr", "")) == "TYPE_CHECKING" for part in walk(node.test)
        )
    if isinstance(node, ast.With):
        caught = list(map(attrgetter("context_expr"), node.items))
    else:
        handlers = node.handlers if isinstance(node, ast.Try | ast.TryStar) else []
        caught = [handler.type or ast.Name("Exception") for handler in handlers]
    return not _MISSING.isdisjoint(names_in(*caught))


def _is_available(root: str, available: Collection[str], is_installed: Callable[[str], bool]) -> bool:
    return root in sys.stdlib_module_names or root in available or root == "__main__" or is_installed(root)


def _is_here(root: str) -> bool:
    from importlib.util import find_spec

    try:
        return find_spec(root) is not None
    except (ImportError, ValueError, AttributeError):
        return False


def _alternatives(
    roots: Collection[str], available: Collection[str], is_installed: Callable[[str], bool]
) -> dict[str, str]:
    """Return what to import instead of modules that are not there."""
    from pkgutil import iter_modules

    public = {name for name in sys.stdlib_module_names if not name.startswith("_")}
    names = {*public, *available, *(module.name for module in iter_modules())} if roots else public
    # Where no package is installed, as in WebAssembly, none can be. code_chains itself needs NumPy.
    has_packages = bool(available) or is_installed("numpy")
    found = {}
    for root in roots:
        advice = install_advice(root) if has_packages else ""
        found[root] = did_you_mean(root, names) or f"{advice}; use the standard library, or what is installed"
    return found


def check_names(names: Collection[str]) -> None:
    """Raise if these are no dotted names."""
    if not all(map(_is_dotted, names)):
        raise ConfigurationError("names", names, 'full dotted names, e.g. "os.system"')


def _is_dotted(name: object) -> bool:
    return isinstance(name, str) and all(map(str.isidentifier, name.split(".")))


def did_you_mean(name: str, names: Iterable[str]) -> str:
    """Return a suggestion of a similar name; empty if there is none."""
    from difflib import get_close_matches

    close = get_close_matches(name, sorted(set(names) - {name}), n=1, cutoff=0.8)
    return f"; did you mean {close[0]!r}?" if close else ""
