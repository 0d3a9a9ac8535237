"""What tests patch, by pytest's fixture or by mocks, is patched in the program's process as well."""

from __future__ import annotations

import builtins
import contextlib
import inspect
import os
import sys
from collections.abc import Callable
from functools import wraps
from typing import Any

from .surroundings import set_variable

Request = Callable[..., Any]
"""Makes the program's side do something by name."""


class MonkeyPatch:
    """What pytest's fixture of this name gives: changes that end with the test.

    Args:
        request: See `Request`.
    """

    def __init__(self, request: Request) -> None:
        self._request, self._undo = request, contextlib.ExitStack()

    def setattr(self, target: Any, name: Any, value: Any = None, raising: bool = True) -> None:
        """Set an attribute of an object, or of what a dotted name means."""
        if isinstance(target, str):
            owner, _, attribute = target.rpartition(".")
            target, name, value = sys.modules.get(owner) or __import__(owner, fromlist=["_"]), attribute, name
        if raising and not hasattr(target, name):
            raise AttributeError(name)
        self._undo.callback(builtins.setattr, target, name, getattr(target, name, None))
        builtins.setattr(target, name, value)
        if _is_shared(target, name):
            self._request("replace", target.__name__, name, value)
            self._undo.callback(self._request, "replace", target.__name__, name)

    def setitem(self, target: Any, key: Any, value: Any) -> None:
        """Set an item of a mapping."""
        if target is os.environ:
            self.setenv(key, value)
            return
        if key in target:
            self._undo.callback(target.__setitem__, key, target[key])
        else:
            self._undo.callback(target.__delitem__, key)
        target[key] = value

    def setenv(self, name: str, value: str | None, prepend: str | None = None) -> None:
        """Set an environment variable."""
        before = os.environ.get(name)
        if prepend and before:
            value = f"{value}{prepend}{before}"
        self._undo.callback(self._set_variable, name, before)
        self._set_variable(name, None if value is None else str(value))

    def delenv(self, name: str, raising: bool = True) -> None:
        """Remove an environment variable."""
        if raising and name not in os.environ:
            raise KeyError(name)
        self.setenv(name, None)

    def chdir(self, path: Any) -> None:
        """Change the working directory; the program follows with the next call."""
        self._undo.callback(os.chdir, os.getcwd())
        os.chdir(path)

    def _set_variable(self, name: str, value: str | None) -> None:
        set_variable(name, value)  # It goes with the next call.

    def undo(self) -> None:
        """Take back all changes."""
        self._undo.close()


class ProgramModule:
    """The program as a module, whose names tests may set: in its own process.

    Args:
        request: See `Request`.
        look_up: Returns the program's value of a name, or raises `KeyError`.
    """

    def __init__(self, request: Request, look_up: Callable[[str], Any]) -> None:
        vars(self).update(_request=request, _look_up=look_up)

    def __getattr__(self, name: str) -> Any:
        try:
            return self._look_up(name)
        except KeyError:
            raise AttributeError(f"The program does not define {name!r}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        self._request("bind", name, value)

    def __delattr__(self, name: str) -> None:
        self._request("bind", name)


def _is_shared(target: Any, name: str) -> bool:
    """Return whether a program sees an attribute of a module in its own process; `input` goes with each call."""
    return inspect.ismodule(target) and (target.__name__, name) != ("builtins", "input")


def follow_mocks(request: Request) -> None:
    """Let what `unittest.mock.patch` puts into a module hold for the program, too.

    Args:
        request: See `Request`.
    """
    from unittest import mock

    kind: Any = type(mock.patch("os.sep"))
    enter, leave = kind.__enter__, kind.__exit__

    @wraps(enter)
    def entered(self: Any) -> Any:
        value = enter(self)
        if _is_shared(self.target, self.attribute):
            request("replace", self.target.__name__, self.attribute, getattr(self.target, self.attribute))
        return value

    @wraps(leave)
    def left(self: Any, *error: Any) -> Any:
        if _is_shared(self.target, self.attribute):
            request("replace", self.target.__name__, self.attribute)
        return leave(self, *error)

    kind.__enter__, kind.__exit__ = entered, left
