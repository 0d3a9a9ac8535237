"""Lets tests inspect what the program defines, with Python's own `inspect`."""

from __future__ import annotations

import importlib
import inspect
from collections.abc import Callable
from functools import wraps
from typing import Any

from .plain_data import BASES, plain
from .proxies import Remote

PREDICATES = tuple(
    (
        "isabstract isasyncgenfunction isbuiltin isclass iscoroutine iscoroutinefunction isfunction isgenerator"
        " isgeneratorfunction ismethod isroutine"
    ).split()
)
_predicates: dict[str, Callable[[object], bool]] = {name: getattr(inspect, name) for name in PREDICATES}
_PLAIN = (dict, *(base for base in BASES if not inspect.isabstract(base)))
_signature, _callable, _bases = inspect.signature, callable, type.__dict__["__bases__"].__get__


def of_program(what: str, value: Any, *names: str) -> Any:
    """Return what the program's side knows of one of its objects; an operation that tests may request.

    Args:
        what: What to look at.
        value: The object.
        names: For `is_a` a module of Python, and a class of it.
    """
    if what == "is_a":
        return isinstance(value, getattr(importlib.import_module(names[0]), names[1]))
    if what == "vars":
        return dict(vars(value))
    if what == "plain":  # What an object is without its class, if that derives from a plain one.
        return plain(value) if issubclass(type(value), _PLAIN) else None
    if what == "bases":
        return [base.__name__ if base.__module__ == "builtins" else base for base in _bases(value)]
    if what == "signature":
        return [_parameter(parameter) for parameter in _signature(value).parameters.values()]
    if what == "callable":
        return _callable(value)
    return bool(_predicates[what](value))


def _parameter(parameter: inspect.Parameter) -> list[Any]:
    nothing = inspect.Parameter.empty
    default = None if parameter.default is nothing else parameter.default
    annotation = parameter.annotation
    text = "" if annotation is nothing else getattr(annotation, "__name__", None) or str(annotation)
    return [parameter.name, parameter.kind.name, parameter.default is not nothing, default, text]


def adapt(sources: dict[str, str], look_up: Callable[[str], Any]) -> None:
    """Let `inspect` see through to the program's objects.

    Args:
        sources: The source of what the program defines, by its dotted name.
        look_up: Returns the program's value of a name.
    """
    for name in PREDICATES:
        setattr(inspect, name, _seeing(name, _predicates[name]))
    get_source = inspect.getsource

    @wraps(get_source)
    def source_of(value: Any) -> str:
        if not isinstance(value, Remote):
            return get_source(value)
        for path, source in sources.items():
            owner, _, attribute = path.rpartition(".")
            if value is (getattr(look_up(owner), attribute, None) if owner else look_up(path)):
                return source
        raise OSError("could not get source code")

    replaced: Any = inspect
    replaced.getsource = source_of
    replaced.getsourcelines = lambda value: (source_of(value).splitlines(keepends=True), 1)


def _seeing(name: str, predicate: Callable[[object], bool]) -> Any:
    @wraps(predicate)
    def see(value: object) -> bool:
        if isinstance(value, Remote):
            return bool(value._channel.request("inspect", name, value))
        return predicate(value)

    return see
