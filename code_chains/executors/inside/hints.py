"""What is there instead of what was missing: close names, keys, modules and files."""

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

MOST, LONGEST = 20, 60
USUAL = (
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
    """One sentence about what is there, or nothing.

    Args:
        error: What was raised.
        names: What the failing frame could see.
    """
    with contextlib.suppress(Exception):
        if isinstance(error, NameError):
            return close(error.name or "", [*names, *dir(builtins)])
        if isinstance(error, AttributeError):
            return close(error.name or "", dir(error.obj))
        if isinstance(error, KeyError):
            return keys(error.args[0], names.values())
        if isinstance(error, ModuleNotFoundError):
            return modules((error.name or "").partition(".")[0])
        if isinstance(error, ImportError):
            return missing_name(error)
        if isinstance(error, FileNotFoundError):
            return files()
    return ""


def close(name: str, there: Iterable[str]) -> str:
    """The names that look like this one."""
    public = [other for other in there if isinstance(other, str) and not other.startswith("_")]
    found = difflib.get_close_matches(name, public, 3, 0.6)
    return f"Close names are {listed(found)}." if found else ""


def keys(key: object, values: Iterable[object]) -> str:
    """Keys or columns that are there, from the table in which one looks most like the key."""
    best, shown = -1.0, ""
    for value in values:
        word, there = ("columns", list(value.columns)) if hasattr(value, "columns") else ("keys", value)
        if not isinstance(there, dict | list) or not there or (word == "keys" and not isinstance(there, dict)):
            continue
        likeness = max(
            difflib.SequenceMatcher(None, str(key).lower(), str(one).lower()).ratio() for one in list(there)[:200]
        )
        if likeness > best and key not in there:
            best, shown = likeness, f"The {word} are {listed(list(there))}."
    return shown


def modules(name: str) -> str:
    """Modules that are there: those of a similar name, and the usual ones."""
    known = [*sys.stdlib_module_names, *(module.name for module in pkgutil.iter_modules())]
    usual = [one for one in USUAL if importlib.util.find_spec(one) is not None]
    close_ones = difflib.get_close_matches(name, known, 2, 0.75)
    similar = f"Of a similar name there is {listed(close_ones)}. " if close_ones else ""
    return f"{similar}It is not installed. There are the standard library{''.join(f', {one}' for one in usual)}."


def missing_name(error: ImportError) -> str:
    """Names of a module that look like the one it does not have."""
    module, name = sys.modules.get(error.name or ""), getattr(error, "name_from", None)
    wanted = name or str(error).split("'")[1]
    return close(wanted, dir(module)) if module else ""


def files() -> str:
    """The files of the working directory."""
    there = sorted(os.listdir())
    return (
        f"In the working directory there are {listed(there)}."
        if there
        else "There are no files in the working directory."
    )


def listed(things: list[Any]) -> str:
    """Some things by name."""
    shown = ", ".join(repr(thing)[:LONGEST] for thing in things[:MOST])
    return f"{shown} and {len(things) - MOST} more" if len(things) > MOST else shown
