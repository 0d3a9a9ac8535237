"""The namespace of tests, in which names of the program are looked up in its sandbox."""

from __future__ import annotations

import builtins
import types
from collections.abc import Iterable
from typing import Any

from .bench import Bench
from .capabilities import ProtectedNamespace
from .plain_data import BASES
from .proxies import Member, Remote, condition, let_compare
from .rpc import RpcChannel, error_type
from .wire import Json

OUTPUT = "output"
"""What tests call the text that the program printed."""
ABSTRACT = ("collections.abc", "numbers", "typing")
"""Modules with classes that objects are of without naming them."""


class HarnessNamespace(ProtectedNamespace):
    """The tests' names; unknown names are looked up in the program.

    Args:
        names: The initial names.
        channel: The channel to the program's sandbox.
    """

    def __init__(self, names: Json, channel: RpcChannel) -> None:
        super().__init__(names)
        channel.shared.is_of_tests = True
        self._channel = channel
        self._program_names: set[str] | None = None
        self._own_names = frozenset[str]()
        # Source of tests refers to these names.
        self.bench = Bench(channel, self.look_up)
        self.update(self.bench.names())
        self["callable"] = lambda value: _callable(value, channel)
        self["hasattr"] = lambda value, name: _has(value, name, channel)
        self["_vars"] = lambda value: _vars(value, channel)
        self["_type"] = lambda value: _type(value, channel)
        self["isinstance"] = lambda value, kinds: _is_instance(value, kinds, channel)
        self["_program"] = self._required
        self["_condition"] = condition
        self["_own"] = self.reserve

    def __missing__(self, name: str) -> Any:
        # Invariant: a program replaces neither builtins, such as `abs` and `all`, nor names that the tests
        # bind, even if only in one branch.
        if name in self._own_names:
            raise KeyError(name)
        if name in self.bench.asked:
            return self._required(name)
        is_operand = name in self.bench.operands
        if (
            is_operand
            and _is_plain(value := self._found(name))
            and not (name == OUTPUT and isinstance(value, str))
        ):
            return value
        if name == OUTPUT:
            return self.bench.output
        if name in vars(builtins):
            raise KeyError(name)
        return self.look_up(name)

    def __contains__(self, name: object) -> bool:
        """Return whether `name in globals()`, as if tests and program were one module."""
        if super().__contains__(name):
            return True
        return name not in self._own_names and isinstance(name, str) and self._is_defined(name)

    def reserve(self, names: Iterable[str]) -> None:
        """Never look up these names in the program, whether they are bound yet or not: the tests bind them."""
        self._own_names = frozenset(names)

    def _required(self, name: str) -> Any:
        """Return the program's value of a name that the tests cannot mean otherwise."""
        try:
            return self.look_up(name)
        except KeyError:
            raise AssertionError(f"Define {name!r}") from None

    def _found(self, name: str) -> Any:
        """Return the program's value of a name, or None."""
        try:
            return self.look_up(name)
        except KeyError:
            return None

    def look_up(self, name: str) -> Any:
        """Return the program's value of a name."""
        if not self._is_defined(name):
            raise KeyError(name)
        value = self._channel.request("name", name)
        self.bench.seen |= {name, "_program"}
        if isinstance(value, Remote) and value._class and (error := self._as_error_type(value)):
            return error
        if isinstance(value, Remote) and value._class and name[:1].isupper():
            let_compare(value, compares=True)
        return value

    def _is_defined(self, name: str) -> bool:
        """Return whether the program defines a name."""
        if self._program_names is None:
            self._program_names = {*self._channel.request("names")}
        self.bench.seen.add("globals")
        return name in self._program_names

    def _as_error_type(self, cls: Remote) -> type[Exception] | None:
        """Return an exception class of the program as a class that can be caught here."""
        bases = self._channel.request("getattr", cls, "__mro__")
        types = tuple((self._text(base, "__module__"), self._text(base, "__name__")) for base in bases)
        return error_type(types) if ("builtins", "Exception") in types else None

    def _text(self, cls: Any, attribute: str) -> str:
        return str(self._channel.request("getattr", cls, attribute))


def _is_plain(value: Any) -> bool:
    """Return whether a value of the program is data: no object, class or function of it, and not None."""
    return value is not None and not isinstance(value, Remote | type) and not callable(value)


def _callable(value: Any, channel: RpcChannel) -> bool:
    """Return whether a value can be called; of one of the program's, what that says."""
    return (
        bool(channel.request("inspect", "callable", value)) if isinstance(value, Remote) else callable(value)
    )


def _has(value: Any, name: str, channel: RpcChannel) -> bool:
    """Return whether a value has an attribute; of one of the program's, what that says, as proxies have all special ones."""
    if not isinstance(value, Remote):
        return hasattr(value, name)
    try:
        channel.request("getattr", value, name)
    except AttributeError:
        return False
    return True


def _vars(value: Any, channel: RpcChannel) -> Any:
    """Return the attributes of a value that it has itself."""
    return channel.request("inspect", "vars", value) if isinstance(value, Remote) else vars(value)


def _type(value: Any, channel: RpcChannel) -> Any:
    """Return the class of a value."""
    value = value.owner if isinstance(value, Member) else value
    return channel.request("type", value) if isinstance(value, Remote) else type(value)


def _is_instance(value: Any, kinds: Any, channel: RpcChannel) -> bool:
    """Return whether a value is of a class; of an object of the program, what its process says of Python's own classes."""
    kinds = kinds.__args__ if isinstance(kinds, types.UnionType) else kinds
    if isinstance(kinds, tuple):
        return any(_is_instance(value, kind, channel) for kind in kinds)
    if isinstance(kinds, Remote) and isinstance(value, Member):
        value = value.owner
    if isinstance(kinds, Remote) and hasattr(type(value), "_fields"):  # A named tuple, which is a value.
        return [type(value).__name__, *value._fields] == [kinds.__name__, *getattr(kinds, "_fields", ())]
    if not isinstance(value, Remote) or isinstance(kinds, Remote):
        return isinstance(value, kinds)
    if place := _place_of(kinds):
        return bool(channel.request("inspect", "is_a", value, *place))
    return isinstance(value, kinds)


def _place_of(kind: Any) -> tuple[str, str] | None:
    """Return module and name of a class or type of Python, of which objects of the program's classes are as well."""
    names = (name for name, other in vars(types).items() if other is kind)
    if name := next(names, ""):
        return "types", name
    module = getattr(kind, "__module__", "")
    is_known = module in ABSTRACT or kind in BASES or kind in (dict, property, classmethod, staticmethod)
    return (module, kind.__name__) if is_known else None
