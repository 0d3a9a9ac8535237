"""Suggest what exists instead of what was missing: close names, keys, modules and files."""

from __future__ import annotations

import ast
import builtins
import contextlib
import difflib
import errno
import importlib.util
import inspect
import os
import pkgutil
import re
import sys
import types
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from .wire import Json

MAX_ITEMS, MAX_ITEM_CHARS = 20, 60
MAX_COMPARED_KEYS, MAX_TABLES = 200, 200
MAX_CLOSE_NAMES, MIN_NAME_SIMILARITY, MIN_KEY_SIMILARITY = 3, 0.6, 0.8
WRONG_ARGUMENTS = re.compile(r"[\w.<>]+\(\) (takes|missing|got) ")
NOT_ITERABLE = re.compile(r"cannot unpack non-iterable (\w+) object")
MAX_CLOSE_MODULES, MIN_MODULE_SIMILARITY = 2, 0.75
NOT_IN_WEBASSEMBLY = "WebAssembly has no threads, processes, sockets or links: write it without them."
NO_WASI_CALLS = {"system", "fork", "pipe", "kill", "popen", "execv", "setitimer", "alarm", "dup2", "waitpid"}
"""Functions that Python lacks in WebAssembly."""
NOT_IN_DATABASE = re.compile(r"no such (?:column|table): ")
DATE_OF_TIMES = "Invalid comparison between dtype=datetime64"
WITH_TIMESTAMP = "Compare with pd.Timestamp(…), and a last day that counts as a whole with < the day after."
POPULAR = "numpy pandas scipy sklearn matplotlib sympy polars pyarrow statsmodels networkx requests".split()


def hint(error: BaseException, names: Json, expression: str = "") -> str:
    """Return one sentence about what exists; empty if there is nothing to suggest.

    Args:
        error: What was raised.
        names: The names that the failing frame could see.
        expression: The source of the expression that failed.
    """
    with contextlib.suppress(Exception):
        if sys.platform == "wasi" and is_unsupported(error):
            return NOT_IN_WEBASSEMBLY
        if isinstance(error, NameError):
            return close_names(error.name or "", [*names, *dir(builtins)])
        if isinstance(error, AttributeError):
            return close_names(error.name or "", dir(error.obj)) or attributes(error.obj)
        if isinstance(error, TypeError):
            return signature(str(error), names, expression) or fields(str(error))
        if isinstance(error, KeyError):
            return keys(error.args[0], names, expression)
        if isinstance(error, ModuleNotFoundError):
            return modules((error.name or "").partition(".")[0])
        if isinstance(error, ImportError):
            return names_of_module(error)
        if isinstance(error, FileNotFoundError):
            return files()
        return database(str(error), names)
    return ""


def is_unsupported(error: BaseException) -> bool:
    """Whether the platform lacks what was called."""
    if isinstance(error, AttributeError):
        owner = getattr(error.obj, "__name__", "")
        return owner == "_socket" or (owner in ("os", "signal") and error.name in NO_WASI_CALLS)
    if getattr(error, "errno", 0) in (errno.ENOTSUP, errno.EPERM):
        return True
    return "can't start new thread" in str(error) or "networking not enabled" in str(error)


def close_names(name: str, candidates: Iterable[str]) -> str:
    """Suggest names that are similar to this one."""
    public = [other for other in candidates if isinstance(other, str) and not other.startswith("_")]
    matches = difflib.get_close_matches(name, public, MAX_CLOSE_NAMES, MIN_NAME_SIMILARITY)
    return f"Close names are {listed(matches)}." if matches else ""


def all_names(owner: object) -> str:
    """List what an object has, if that is little."""
    public = [name for name in dir(owner) if not name.startswith("_")]
    return f"There are {listed(public)}." if 0 < len(public) <= MAX_ITEMS else ""


def attributes(owner: object) -> str:
    """List the attributes of an object of a class that is not built in."""
    is_builtin = type(owner).__module__ == "builtins" and not isinstance(owner, type)
    return "" if is_builtin else all_names(owner)


def signature(message: str, names: Json, expression: str) -> str:
    """Return how the function is called that got other arguments than it takes, or what is compared with times."""
    if message.startswith(DATE_OF_TIMES):
        return WITH_TIMESTAMP
    if not WRONG_ARGUMENTS.match(message):
        return ""
    call = ast.parse(expression.strip(), mode="eval").body
    function = value_of(call.func, names) if isinstance(call, ast.Call) else None
    if not isinstance(function, types.FunctionType | type):
        return ""
    return f"It is called as {function.__name__}{inspect.signature(function)}."


def fields(message: str) -> str:
    """Return the attributes of an object that is no tuple."""
    found = NOT_ITERABLE.match(message)
    classes = [cls for cls in object.__subclasses__() if found and cls.__name__ == found[1]]
    named = [name for cls in classes for name in getattr(cls, "__dataclass_fields__", ())]
    return f"It has the attributes {listed(named)}." if len(classes) == 1 and named else ""


def keys(key: object, names: Json, expression: str) -> str:
    """Suggest the keys or columns of the table that an expression looked into, else of the one with the most similar."""
    with contextlib.suppress(Exception):
        table = container(expression, names)
        if described := described_keys(table):
            return closest(key, table) + described
    own = [value for name, value in names.items() if not name.startswith("__")]
    best, suggestion = -1.0, ""
    for table in tables(own):
        candidates = keys_of(table)
        if candidates and key not in candidates:
            ratio = max(similarity(key, candidate) for candidate in candidates[:MAX_COMPARED_KEYS])
            if ratio > best:
                best, suggestion = ratio, closest(key, table) + described_keys(table)
    return suggestion


def closest(key: object, table: object) -> str:
    """Return a sentence with the key that is nearly the same, such as one with a colon or in another case."""
    candidates = [*map(str, keys_of(table)[:MAX_COMPARED_KEYS])]
    ratios = {candidate: similarity(key, candidate) for candidate in candidates}
    best = max(candidates, key=ratios.__getitem__, default="")
    return f"There is {best!r}. " if best != key and ratios.get(best, 0.0) >= MIN_KEY_SIMILARITY else ""


def container(expression: str, names: Json) -> object:
    """Return what an expression looked into: `d["a"]` for `d["a"]["b"]`, and `d` for `d.pop("b")`.

    Raises:
        Exception: It is no such expression.
    """
    tree = ast.parse(expression.strip(), mode="eval").body
    if isinstance(tree, ast.Call) and isinstance(tree.func, ast.Attribute):
        return value_of(tree.func.value, names)
    if isinstance(tree, ast.Subscript):
        return value_of(tree.value, names)
    return None


def value_of(node: ast.expr, names: Json) -> Any:
    """Return the value of names, attributes and items of builtin containers: no function of the program is called.

    Raises:
        Exception: It consists of something else, or does not exist.
    """
    if isinstance(node, ast.Name):
        return names[node.id]
    if isinstance(node, ast.Constant):
        return node.value
    if isinstance(node, ast.Attribute):
        return vars(value_of(node.value, names))[node.attr]
    if isinstance(node, ast.Subscript):
        outer = value_of(node.value, names)
        if type(outer) in (dict, list, tuple):
            return outer[value_of(node.slice, names)]
    raise LookupError


def tables(values: Iterable[object]) -> Iterator[object]:
    """Yield dicts and tables, also those in other containers, outer ones first."""
    pending = list(values)
    for count, value in enumerate(pending):
        if count >= MAX_TABLES:
            return
        if isinstance(value, dict):
            pending += list(value.values())[:MAX_ITEMS]
        elif isinstance(value, list | tuple):
            pending += value[:MAX_ITEMS]
        if isinstance(value, dict) or hasattr(type(value), "columns"):
            yield value


def keys_of(table: object) -> list[Any]:
    if hasattr(type(table), "columns"):
        return list(getattr(table, "columns", ()))
    return list(table) if isinstance(table, Mapping) else []


def described_keys(table: object) -> str:
    """Return a sentence with the keys or columns of a table; empty for anything else."""
    kind = "columns" if hasattr(type(table), "columns") else "keys"
    if kind == "keys" and isinstance(table, Mapping) and not table:
        return "It is empty."
    candidates = keys_of(table)
    return f"The {kind} are {listed(candidates)}." if candidates else ""


def similarity(key: object, candidate: object) -> float:
    return difflib.SequenceMatcher(None, str(key).lower(), str(candidate).lower()).ratio()


def database(message: str, names: Json) -> str:
    """List the tables with their columns of the database that is open and lacks one."""
    if not NOT_IN_DATABASE.search(message):
        return ""
    sqlite3 = sys.modules["sqlite3"]
    (connection,) = {value for value in names.values() if type(value) is sqlite3.Connection}
    cursor = sqlite3.Cursor(connection)
    found = cursor.execute("SELECT name FROM sqlite_master WHERE type IN ('table', 'view')").fetchmany(
        MAX_ITEMS
    )
    tables = []
    for (name,) in found:
        columns = cursor.execute("SELECT name FROM pragma_table_info(?)", (name,)).fetchmany(MAX_ITEMS)
        tables.append(f"{name} ({', '.join(str(column) for (column,) in columns)})")
    return f"The tables are {', '.join(tables)}." if tables else "There are no tables."


def modules(name: str) -> str:
    """Suggest installed modules: those of a similar name, and popular ones."""
    popular = [module for module in POPULAR if importlib.util.find_spec(module) is not None]
    available = f"Available are {', '.join(['the standard library', *popular])}."
    if name in sys.stdlib_module_names:
        return f"This Python lacks that part of the standard library. {available}"
    installed = {*sys.stdlib_module_names, *(module.name for module in pkgutil.iter_modules())}
    matches = difflib.get_close_matches(name, sorted(installed), MAX_CLOSE_MODULES, MIN_MODULE_SIMILARITY)
    similar = f"Of a similar name there is {listed(matches)}. " if matches else ""
    return f"{similar}It is not installed. {available}"


def names_of_module(error: ImportError) -> str:
    """Suggest names of a module that are similar to the missing one."""
    module, name = sys.modules.get(error.name or ""), getattr(error, "name_from", None)
    missing = name or str(error).split("'")[1]
    return (close_names(missing, dir(module)) or all_names(module)) if module else ""


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
