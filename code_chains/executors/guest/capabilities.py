"""Objects that tests must not lend to a program, as it could forge the tests' outcome with them."""

from __future__ import annotations

import functools
import inspect
import operator
import string
import sys
import types
from typing import Any

FORBIDDEN: list[Any] = [
    *(
        eval,
        exec,
        compile,
        __import__,
        getattr,
        setattr,
        delattr,
        open,
        globals,
        locals,
        vars,
        input,
        breakpoint,
        type,
    ),
    *(types.FunctionType, types.MethodType, types.CodeType),
    *(operator.attrgetter, operator.methodcaller, operator.setitem, operator.delitem),
    *(str.format, str.format_map, string.Formatter, functools.update_wrapper, functools.wraps),
]
"""Python's own callables that let their caller act with the tests' rights, or make classes that do."""
FORBIDDEN_MODULES = frozenset(
    (
        "_ctypes _frozen_importlib _frozen_importlib_external _io _pickle _posixsubprocess code codeop ctypes"
        " dataclasses gc importlib inspect io marshal multiprocessing os pickle posix pty runpy shelve shutil"
        " signal site socket subprocess sys threading types unittest"
    ).split()
)
"""Modules whose functions and classes are not lent."""
FORBIDDEN_METHODS = {
    "__setattr__",
    "__delattr__",
    "__getattribute__",
    "__new__",
    "__init__",
    "__reduce__",
    "__reduce_ex__",
}


class ProtectedNamespace(dict[str, Any]):
    """A namespace that must not be lent."""


def is_forbidden(value: Any) -> bool:
    """Return whether a caller of the value can do more than compute with it."""
    if isinstance(value, functools.partial):
        return any(map(is_forbidden, (value.func, *value.args, *value.keywords.values())))
    if not callable(value):
        return inspect.ismodule(value) or is_namespace(value)
    if any(value is forbidden for forbidden in FORBIDDEN) or is_namespace(getattr(value, "__self__", None)):
        return True
    if not (inspect.isroutine(value) or inspect.isclass(value)):
        return False
    if inspect.isclass(value) and issubclass(value, type):
        return True
    module = getattr(value, "__module__", None) or ""
    is_of_module = str(module).partition(".")[0] in FORBIDDEN_MODULES
    return is_of_module or getattr(value, "__name__", "") in FORBIDDEN_METHODS


def is_namespace(value: Any) -> bool:
    """Return whether a value is the namespace of a module, or of the tests."""
    if isinstance(value, ProtectedNamespace):
        return True
    if not isinstance(value, dict) or "__name__" not in value:
        return False
    modules = list(sys.modules.values())
    return any(vars(module) is value for module in modules if inspect.ismodule(module))


def is_own_object(value: Any) -> bool:
    """Return whether a value is an object of a class that tests define, or a mock."""
    return type(value).__module__ == "__main__" or _is_mock(value)


def may_use(value: Any, operation: str, *args: Any) -> bool:
    """Return whether a program may do something with an object that tests have made and lend to it.

    Invariant: it reaches no special attribute and replaces no method, so that the tests answer what they ask the object
    later; and of a mock it reaches nothing that says how the mock was used.

    Args:
        value: The object.
        operation: The name of an operation of `proxies`.
        args: What it is done with.
    """
    if operation not in ("getattr", "setattr"):
        return operation not in ("type", "isinstance", "copy")
    name = args[0]
    if not isinstance(name, str) or name.startswith("_"):
        return False
    if _is_mock(value):
        return operation == "getattr" and name not in dir(type(value))
    found = inspect.getattr_static(type(value), name, None)
    is_method = callable(found) or isinstance(found, staticmethod | classmethod)
    return operation == "getattr" or not is_method


def _is_mock(value: Any) -> bool:
    mock = sys.modules.get("unittest.mock")
    return mock is not None and isinstance(value, mock.NonCallableMock)
