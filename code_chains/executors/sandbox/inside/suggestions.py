"""Suggest what exists instead of what was missing: close names, keys, modules and files."""

from __future__ import annotations

import builtins
import contextlib
import difflib
import importlib.util
import os
import pkgutil
import sys
from collections.abc import Iterable
from typing import Any

from .wire import Json

MAX_ITEMS, MAX_ITEM_CHARS = 20, 60
MAX_COMPARED_KEYS = 200
MAX_CLOSE_NAMES, MIN_NAME_SIMILARITY = 3, 0.6
MAX_CLOSE_MODULES, MIN_MODULE_SIMILARITY = 2, 0.75
POPULAR = (
    "numpy",
    "pandas",
    "scipy",
    "sklearn",
    "matplotlib",
    "sympy",
    "polars",
    "pyarrow",
    "statsmodels",
    "networkx",
    "requests",
)


def hint(error: BaseException, names: Json) -> str:
    """Return one sentence about what exists; empty if there is nothing to suggest.

    Args:
        error: What was raised.
        names: The names that the failing frame could see.
    """
    with contextlib.suppress(Exception):
        if isinstance(error, NameError):
            return close_names(error.name or "", [*names, *dir(builtins)])
        if isinstance(error, AttributeError):
            return close_names(error.name or "", dir(error.obj))
        if isinstance(error, KeyError):
            return keys(error.args[0], names.values())
        if isinstance(error, ModuleNotFoundError):
            return modules((error.name or "").partition(".")[0])
        if isinstance(error, ImportError):
            return names_of_module(error)
        if isinstance(error, FileNotFoundError):
            return files()
    return ""


def close_names(name: str, candidates: Iterable[str]) -> str:
    """Suggest names that are similar to this one."""
    public = [other for other in candidates if isinstance(other, str) and not other.startswith("_")]
    matches = difflib.get_close_matches(name, public, MAX_CLOSE_NAMES, MIN_NAME_SIMILARITY)
    return f"Close names are {listed(matches)}." if matches else ""


def keys(key: object, values: Iterable[object]) -> str:
    """Suggest the keys or columns of the table with the key that is most similar to this one."""
    best, suggestion = -1.0, ""
    for value in values:
        if hasattr(value, "columns"):
            kind, candidates = "columns", list(value.columns)
        elif isinstance(value, dict):
            kind, candidates = "keys", list(value)
        else:
            continue
        if not candidates:
            continue
        ratio = max(similarity(key, candidate) for candidate in candidates[:MAX_COMPARED_KEYS])
        if ratio > best and key not in candidates:
            best, suggestion = ratio, f"The {kind} are {listed(candidates)}."
    return suggestion


def similarity(key: object, candidate: object) -> float:
    return difflib.SequenceMatcher(None, str(key).lower(), str(candidate).lower()).ratio()


def modules(name: str) -> str:
    """Suggest installed modules: those of a similar name, and popular ones."""
    installed = [*sys.stdlib_module_names, *(module.name for module in pkgutil.iter_modules())]
    popular = [module for module in POPULAR if importlib.util.find_spec(module) is not None]
    matches = difflib.get_close_matches(name, installed, MAX_CLOSE_MODULES, MIN_MODULE_SIMILARITY)
    similar = f"Of a similar name there is {listed(matches)}. " if matches else ""
    return f"{similar}It is not installed. There are {', '.join(['the standard library', *popular])}."


def names_of_module(error: ImportError) -> str:
    """Suggest names of a module that are similar to the missing one."""
    module, name = sys.modules.get(error.name or ""), getattr(error, "name_from", None)
    missing = name or str(error).split("'")[1]
    return close_names(missing, dir(module)) if module else ""


def files() -> str:
    """List the files of the working directory."""
    entries = sorted(os.listdir())
    if not entries:
        return "There are no files in the working directory."
    return f"In the working directory there are {listed(entries)}."


def listed(items: list[Any]) -> str:
    """Return some items as text."""
    text = ", ".join(repr(item)[:MAX_ITEM_CHARS] for item in items[:MAX_ITEMS])
    return f"{text} and {len(items) - MAX_ITEMS} more" if len(items) > MAX_ITEMS else text
