"""Fingerprints of chains and their inputs: checksums of content, never of the identity or address of an object."""

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
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import BaseLanguageModel
from langchain_core.messages import BaseMessage
from langchain_core.runnables import RunnableBinding, RunnableLambda
from langchain_core.vectorstores import VectorStore
from pydantic import BaseModel, SecretStr

from code_chains.analysis.references import words
from code_chains.executors.inputs import table_kind

_IRRELEVANT = words(
    "memory callbacks callback_manager verbose tags metadata name cache rate_limiter disable_streaming output_parser approve"
    " custom_get_token_ids conversations owned budget profile max_retries request_timeout timeout"
)
"""Fields that affect how a chain is run, traced or approved, not its answers."""
_CLIENTS = re.compile(r"client$|api_key$|^http_|^(?:default_)?headers?$|_token$|_token_provider$")
"""Fields of models that hold connections and keys."""
MAX_DEPTH = 60
_OWN_FOLDER = f"{Path(__file__).resolve().parents[1]}{os.sep}"
_PACKAGE_FOLDERS = {
    *site.getsitepackages(),
    *(sysconfig.get_paths()[name] for name in ("stdlib", "purelib", "platlib")),
}
_INSTALLED_FOLDERS = tuple(f"{Path(folder).resolve()}{os.sep}" for folder in _PACKAGE_FOLDERS)


class NotFingerprintableError(Exception):
    """A value has no content to fingerprint; the argument names it."""


def fingerprint(value: object) -> str:
    """Return a checksum of a value's content, which is the same in every process.

    Raises:
        NotFingerprintableError: It holds something without content of its own.
    """
    return hashlib.sha256(
        json.dumps(describe(value), sort_keys=True).encode("utf-8", "surrogatepass")
    ).hexdigest()


@functools.lru_cache(maxsize=1)
def environment() -> str:
    """Return a checksum of this Python and of all installed packages with their versions."""
    packages = sorted(
        {f"{package.name}=={package.version}" for package in importlib.metadata.distributions()}
    )
    return fingerprint([sys.version, sys.platform, packages])


def describe(value: object, within: tuple[int, ...] = ()) -> Any:
    """Describe the content of a value as JSON.

    Supported are JSON values, dataclasses, messages and documents, arrays and frames, functions (their code,
    closures and used globals), models (their parameters, never their keys), chains and executors. Any other
    object is described by its class and all its attributes, or by its attribute `fingerprint` if it has one: what counts
    its calls needs one, as it differs each time.

    Args:
        value: The value.
        within: Ids of the values that contain it, to end cycles.

    Raises:
        NotFingerprintableError: It holds something without content of its own.
    """
    if value is None or isinstance(value, bool | int | str):
        return value
    if id(value) in within:
        return ["again", _kind(value)]
    if len(within) > MAX_DEPTH:
        raise NotFingerprintableError("something that is nested too deeply")
    within = (*within, id(value))
    if hasattr(type(value), "fingerprint") or "fingerprint" in getattr(value, "__dict__", {}):
        own: Any = value.fingerprint  # type: ignore[attr-defined]
        return [_kind(value), describe(own() if callable(own) else own, within)]
    for kinds, describe_kind in _DESCRIBERS:
        if isinstance(value, kinds):
            return [_kind(value), describe_kind(value, within)]
    return [_kind(value), _object(value, within)]


def settings_of(value: object, depth: int = 0) -> Any:
    """Return the settings of a chain as JSON values: texts and numbers of its parts, and the names of its models.

    Functions and other objects are their names: unlike by `describe`, chains are the same if these do other things.
    """
    if value is None or isinstance(value, bool | int | float | str):
        return value
    if depth > MAX_DEPTH:
        return _kind(value)
    if isinstance(value, BaseLanguageModel):
        name = getattr(value, "model_name", None) or getattr(value, "model", None)
        return [_kind(value), name if isinstance(name, str) else ""]
    if isinstance(value, BaseModel):
        fields = {name: getattr(value, name) for name in type(value).model_fields if name not in _IRRELEVANT}
        return [_kind(value), {name: settings_of(field, depth + 1) for name, field in fields.items()}]
    if isinstance(value, Mapping):
        return {str(key): settings_of(item, depth + 1) for key, item in value.items()}
    if isinstance(value, Sequence) and not isinstance(value, bytes):
        return [settings_of(item, depth + 1) for item in value]
    return _kind(value)


def _kind(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _object(value: object, within: tuple[int, ...]) -> Any:
    if kind := table_kind(value):
        return _table(value, kind)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {
            field.name: describe(getattr(value, field.name), within) for field in dataclasses.fields(value)
        }
    if callable(value) and hasattr(value, "__code__"):
        return _function(value, within)
    plain = getattr(value, "__dict__", None)
    if plain is None or isinstance(value, VectorStore):
        raise NotFingerprintableError(_kind(value))
    return _instance(value, plain, within)


def _instance(value: object, names: Iterable[str], within: tuple[int, ...]) -> Any:
    kind: Any = type(value)
    return [_class(kind), {name: describe(getattr(value, name), within) for name in names}]


def _pydantic(value: BaseModel, within: tuple[int, ...]) -> Any:
    """Describe an object by its class and fields, a model without its connections and keys."""
    fields = {name for name in type(value).model_fields if name not in _IRRELEVANT}
    if isinstance(value, BaseLanguageModel):
        fields = {name for name in fields if not _CLIENTS.search(name)}
    return _instance(value, fields, within)


def _bound(value: RunnableBinding[Any, Any], within: tuple[int, ...]) -> Any:
    config = {name: item for name, item in value.config.items() if name == "configurable"}
    return describe([value.bound, value.kwargs, config, value.config_factories], within)


def _function(function: Any, within: tuple[int, ...]) -> Any:
    description = [function.__module__, function.__qualname__]
    if _is_installed(function.__code__.co_filename):
        description.append("")  # The version of its package, a part of `environment`, covers its code.
        used_globals: dict[str, Any] = {}
    else:
        description.append(_code(function.__code__))
        names = _names(function.__code__) & function.__globals__.keys()
        used_globals = {name: function.__globals__[name] for name in names}
    closure = [cell.cell_contents for cell in function.__closure__ or ()]
    defaults = [function.__defaults__ or (), function.__kwdefaults__ or {}]
    return [*description, *(describe(part, within) for part in (closure, defaults, used_globals))]


def _names(code: types.CodeType) -> set[str]:
    inner = [_names(constant) for constant in code.co_consts if isinstance(constant, types.CodeType)]
    return set(code.co_names).union(*inner)


@functools.cache
def _code(code: types.CodeType) -> Any:
    constants = [
        _code(constant) if isinstance(constant, types.CodeType) else _constant(constant)
        for constant in code.co_consts
    ]
    return [hashlib.sha256(code.co_code).hexdigest(), constants, list(code.co_names)]


def _constant(value: object) -> str:
    """Return a constant as text. A set is sorted, as its order differs between processes."""
    if isinstance(value, frozenset):
        return f"frozenset({sorted(map(_constant, value))})"
    return f"({', '.join(map(_constant, value))})" if isinstance(value, tuple) else repr(value)


@functools.cache
def _class(kind: type) -> Any:
    """Describe the code of a class and its bases, except installed classes, whose packages have versions."""
    return [[base, name, _function(method, (id(kind),))] for base, name, method in _methods(kind)]


def _methods(kind: type) -> Iterator[tuple[str, str, types.FunctionType]]:
    for base in kind.__mro__:
        if not _is_installed(getattr(sys.modules.get(base.__module__), "__file__", None) or ""):
            for name, member in sorted(vars(base).items()):
                if isinstance(member, types.FunctionType):
                    yield base.__qualname__, name, member


@functools.cache
def _is_installed(file: str) -> bool:
    return not file or file.startswith(("<frozen", *_INSTALLED_FOLDERS, _OWN_FOLDER))


def _table(value: Any, kind: str) -> Any:
    """Describe an array or frame by its bytes, as a program would receive it."""
    if kind == "numpy" and not value.dtype.hasobject:
        return [str(value.dtype), list(value.shape), _sha256(value.tobytes())]
    try:
        import pyarrow as pa

        table = {"pandas": pa.Table.from_pandas, "polars": lambda frame: frame.to_arrow()}.get(
            kind, pa.table
        )(value)
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, table.schema) as stream:
            stream.write_table(table)
        return _sha256(sink.getvalue().to_pybytes())
    except Exception as error:  # Cells that hold objects, or no pyarrow.
        raise NotFingerprintableError(f"a {kind} table ({error})") from error


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _in_order(values: Set[Any], within: tuple[int, ...]) -> list[str]:
    return sorted(json.dumps(describe(element, within), sort_keys=True) for element in values)


_DESCRIBERS: tuple[tuple[Any, Callable[[Any, tuple[int, ...]], Any]], ...] = (
    (float, lambda value, _: repr(value)),
    (bytes | bytearray, lambda value, _: _sha256(bytes(value))),
    (SecretStr, lambda value, _: None),
    (Path, lambda value, _: str(value)),
    (BaseMessage, lambda value, within: [value.type, describe(value.content, within)]),
    (Document, lambda value, within: describe([value.page_content, value.metadata], within)),
    (Mapping, lambda value, within: {str(key): describe(item, within) for key, item in value.items()}),
    (Sequence, lambda value, within: [describe(element, within) for element in value]),
    (Set, _in_order),
    (type, lambda value, _: [f"{value.__module__}.{value.__qualname__}", _class(value)]),
    (functools.partial, lambda value, within: describe([value.func, value.args, value.keywords], within)),
    (types.BuiltinFunctionType, lambda value, _: f"{value.__module__}.{value.__qualname__}"),
    (types.ModuleType, lambda value, _: value.__name__),
    (
        types.MethodType,
        lambda value, within: [describe(value.__func__, within), describe(value.__self__, within)],
    ),
    (
        RunnableLambda,
        lambda value, within: describe([getattr(value, "func", None), getattr(value, "afunc", None)], within),
    ),
    (RunnableBinding, _bound),
    (BaseModel, _pydantic),
)
