"""What tells a chain, and what it is asked, from another: content, never identity or the address of an object."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib.metadata
import json
import os
import re
import site
import sys
import sysconfig
import types
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any, cast

from langchain_core.documents import Document
from langchain_core.language_models import BaseLanguageModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableBinding, RunnableLambda
from langchain_core.vectorstores import VectorStore
from pydantic import BaseModel, SecretStr

from code_chains.calls import words
from code_chains.inputs import table_kind

__all__ = ["Unknowable", "describe", "environment", "fingerprint"]

_IRRELEVANT = words(
    "memory callbacks callback_manager verbose tags metadata name cache rate_limiter disable_streaming output_parser approve"
    " custom_get_token_ids conversations owned budget profile max_retries request_timeout timeout"
)
"""Fields that change how a chain is run, traced or allowed, not what it answers."""
_CLIENTS = re.compile(r"client$|api_key$|^http_|^(?:default_)?headers?$|_token$|_token_provider$")
"""Fields of models that hold connections and keys."""
_DEEPEST = 60
_OURS = f"{Path(__file__).resolve().parent}{os.sep}"
_PLACES = {*site.getsitepackages(), *(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib"))}
_INSTALLED = tuple(f"{Path(place).resolve()}{os.sep}" for place in _PLACES)


class Unknowable(Exception):  # noqa: N818
    """Something whose content cannot be told; the argument says what."""


def fingerprint(value: object) -> str:
    """A checksum of a value's content, the same in each process.

    Raises:
        Unknowable: It holds something whose content cannot be told.
    """
    return hashlib.sha256(json.dumps(describe(value), sort_keys=True).encode("utf-8", "surrogatepass")).hexdigest()


@functools.lru_cache(maxsize=1)
def environment() -> str:
    """A checksum of this Python and of all packages that are installed, with their versions."""
    found = sorted({f"{one.name}=={one.version}" for one in importlib.metadata.distributions()})
    return fingerprint([sys.version, sys.platform, found])


def describe(value: object, within: tuple[int, ...] = ()) -> Any:
    """The content of a value as JSON.

    It knows JSON values, records, messages and documents, arrays and frames, functions (by their code, what they close over
    and the globals they use), models (by what identifies them, never their keys), chains and executors. Any other object is
    told by its class and all its attributes; it may tell for itself with an attribute `fingerprint`.

    Args:
        value: What to describe.
        within: Ids of what it is part of, so that what holds itself ends.

    Raises:
        Unknowable: Its content cannot be told.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if id(value) in within:
        return ["again", _kind(value)]
    if len(within) > _DEEPEST:
        raise Unknowable("something that is nested too deeply")
    within = (*within, id(value))
    if hasattr(type(value), "fingerprint") or "fingerprint" in getattr(value, "__dict__", {}):
        own: Any = value.fingerprint  # type: ignore[attr-defined]
        return [_kind(value), describe(own() if callable(own) else own, within)]
    for kinds, tell in _TELLERS:
        if isinstance(value, kinds):
            return [_kind(value), tell(value, within)]
    return [_kind(value), _object(value, within)]


def _kind(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _object(value: object, within: tuple[int, ...]) -> Any:
    if kind := table_kind(value):
        return _table(value, kind)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: describe(getattr(value, one.name), within) for one in dataclasses.fields(value)}
    if callable(value) and hasattr(value, "__code__"):
        return _function(value, within)
    plain = getattr(value, "__dict__", None)
    if plain is None or isinstance(value, VectorStore):
        raise Unknowable(_kind(value))
    return [_class(cast("Any", type(value))), {name: describe(held, within) for name, held in plain.items()}]


def _model(model: BaseLanguageModel[Any], within: tuple[int, ...]) -> Any:
    """A model by its class and parameters; connections and keys in it have no content of their own."""
    fields = [name for name in type(model).model_fields if name not in _IRRELEVANT and not _CLIENTS.search(name)]
    return [_class(type(model)), {name: describe(getattr(model, name), within) for name in fields}]


def _pydantic(value: BaseModel, within: tuple[int, ...]) -> Any:
    fields = [name for name in type(value).model_fields if name not in _IRRELEVANT]
    return [_class(type(value)), {name: describe(getattr(value, name), within) for name in fields}]


def _bound(value: RunnableBinding[Any, Any], within: tuple[int, ...]) -> Any:
    config = {name: held for name, held in value.config.items() if name == "configurable"}
    return describe([value.bound, value.kwargs, config, value.config_factories], within)


def _function(function: Any, within: tuple[int, ...]) -> Any:
    told = [function.__module__, function.__qualname__]
    if _is_installed(function.__code__.co_filename):
        told.append("")  # The version of its package says the rest.
        used: dict[str, Any] = {}
    else:
        told.append(_code(function.__code__))
        used = {name: function.__globals__[name] for name in _names(function.__code__) if name in function.__globals__}
    held = [cell.cell_contents for cell in function.__closure__ or ()]
    defaults = [function.__defaults__ or (), function.__kwdefaults__ or {}]
    return [*told, *(describe(one, within) for one in (held, defaults, used))]


def _names(code: types.CodeType) -> set[str]:
    inner = [_names(one) for one in code.co_consts if isinstance(one, types.CodeType)]
    return set(code.co_names).union(*inner)


@functools.cache
def _code(code: types.CodeType) -> Any:
    constants = [_code(one) if isinstance(one, types.CodeType) else _constant(one) for one in code.co_consts]
    return [hashlib.sha256(code.co_code).hexdigest(), constants, list(code.co_names)]


def _constant(value: object) -> str:
    """A constant of a program as text; the order of a set is not the same in each process."""
    if isinstance(value, frozenset):
        return f"frozenset({sorted(map(_constant, value))})"
    return f"({', '.join(map(_constant, value))})" if isinstance(value, tuple) else repr(value)


@functools.cache
def _class(kind: type) -> Any:
    """The code of a class and of those it comes from, but for what is installed: that has a version."""
    files = {one: getattr(sys.modules.get(one.__module__), "__file__", None) or "" for one in kind.__mro__}
    own = [one for one, file in files.items() if not _is_installed(file)]
    members = [(one.__qualname__, name, member) for one in own for name, member in sorted(vars(one).items())]
    found = [(where, name, member) for where, name, member in members if isinstance(member, types.FunctionType)]
    return [[where, name, _function(member, (id(kind),))] for where, name, member in found]


@functools.cache
def _is_installed(file: str) -> bool:
    return not file or file.startswith(("<frozen", *_INSTALLED, _OURS))


def _table(value: Any, kind: str) -> Any:
    """An array or frame by its bytes, as a program would get it."""
    if kind == "numpy" and not value.dtype.hasobject:
        return [str(value.dtype), list(value.shape), _sha256(value.tobytes())]
    try:
        import pyarrow as pa

        table = {"pandas": pa.Table.from_pandas, "polars": lambda frame: frame.to_arrow()}.get(kind, pa.table)(value)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        return _sha256(sink.getvalue().to_pybytes())
    except Exception as error:  # Cells that hold objects, or no pyarrow.
        raise Unknowable(f"a {kind} table ({error})") from error


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _in_order(values: Set[Any], within: tuple[int, ...]) -> list[str]:
    return sorted(json.dumps(describe(one, within), sort_keys=True) for one in values)


_TELLERS: tuple[tuple[Any, Callable[[Any, tuple[int, ...]], Any]], ...] = (
    (float, lambda value, _: repr(value)),
    (bytes | bytearray, lambda value, _: _sha256(bytes(value))),
    (SecretStr, lambda value, _: None),
    (Path, lambda value, _: str(value)),
    (BaseMessage, lambda value, within: [value.type, describe(value.content, within)]),
    (Document, lambda value, within: describe([value.page_content, value.metadata], within)),
    (Mapping, lambda value, within: {str(key): describe(held, within) for key, held in value.items()}),
    (Sequence, lambda value, within: [describe(one, within) for one in value]),
    (Set, _in_order),
    (type, lambda value, _: [f"{value.__module__}.{value.__qualname__}", _class(value)]),
    (functools.partial, lambda value, within: describe([value.func, value.args, value.keywords], within)),
    (types.BuiltinFunctionType, lambda value, _: f"{value.__module__}.{value.__qualname__}"),
    (types.ModuleType, lambda value, _: value.__name__),
    (types.MethodType, lambda value, within: [describe(value.__func__, within), describe(value.__self__, within)]),
    (
        RunnableLambda,
        lambda value, within: describe([getattr(value, "func", None), getattr(value, "afunc", None)], within),
    ),
    (BaseLanguageModel, _model),
    (RunnableBinding, _bound),
    (BaseModel, _pydantic),
)
