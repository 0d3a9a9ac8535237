"""What tells a chain, and what it is asked, from another: content, never identity or the address of an object."""

from __future__ import annotations

import dataclasses
import functools
import hashlib
import importlib.metadata
import json
import re
import sys
import types
from collections.abc import Callable, Mapping, Sequence, Set
from pathlib import Path
from typing import Any

from langchain_core.documents import Document
from langchain_core.language_models import BaseLanguageModel
from langchain_core.messages import BaseMessage
from pydantic import BaseModel, SecretStr

from code_chains.inputs import table_kind

__all__ = ["Unknowable", "describe", "environment", "fingerprint"]

_IRRELEVANT = frozenset(
    re.findall(
        r"\w+",
        "memory callbacks callback_manager verbose tags metadata name cache rate_limiter disable_streaming output_parser"
        " custom_get_token_ids conversations owned budget profile max_retries request_timeout timeout",
    )
)
"""Fields that change how a chain is run or traced, not what it answers."""
_DEEPEST = 40


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


def describe(value: object, depth: int = 0) -> Any:
    """The content of a value as JSON.

    It knows JSON values, records, messages and documents, arrays and frames, functions (by their code and what they close
    over), models (by what identifies them, never their keys), chains and executors. An object may tell for itself with an
    attribute `fingerprint`.

    Raises:
        Unknowable: It is nothing of these.
    """
    if depth > _DEEPEST:
        raise Unknowable("something that is nested too deeply, or holds itself")
    if value is None or isinstance(value, bool | int | str):
        return value
    if (own := getattr(value, "fingerprint", None)) is not None:
        return [_kind(value), describe(own() if callable(own) else own, depth + 1)]
    for kinds, tell in _TELLERS:
        if isinstance(value, kinds):
            return [_kind(value), tell(value, depth + 1)]
    return [_kind(value), _object(value, depth + 1)]


def _kind(value: object) -> str:
    return f"{type(value).__module__}.{type(value).__qualname__}"


def _object(value: object, depth: int) -> Any:
    if kind := table_kind(value):
        return _table(value, kind)
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        return {one.name: describe(getattr(value, one.name), depth) for one in dataclasses.fields(value)}
    if callable(value) and hasattr(value, "__code__"):
        return _function(value, depth)
    plain = getattr(value, "__dict__", None)
    if plain is None:
        raise Unknowable(f"{type(value).__name__}")
    return {name: describe(held, depth) for name, held in plain.items() if not name.startswith("_")}


def _model(model: BaseLanguageModel[Any], depth: int) -> Any:
    """A model by its class and parameters; clients and keys in it have no content of their own."""
    told = {}
    for name in type(model).model_fields:
        if name not in _IRRELEVANT and not name.endswith(("client", "api_key")):
            try:
                told[name] = describe(getattr(model, name), depth)
            except Unknowable:
                continue
    return told


def _pydantic(value: BaseModel, depth: int) -> Any:
    fields = [name for name in type(value).model_fields if name not in _IRRELEVANT]
    return {name: describe(getattr(value, name), depth) for name in fields}


def _function(function: Any, depth: int) -> Any:
    closed = [cell.cell_contents for cell in function.__closure__ or ()]
    defaults = [function.__defaults__ or (), function.__kwdefaults__ or {}]
    held = getattr(function, "__self__", None)
    return [
        function.__module__,
        function.__qualname__,
        _code(function.__code__),
        *(describe(one, depth) for one in (closed, defaults, held)),
    ]


def _code(code: types.CodeType) -> Any:
    constants = [_code(one) if isinstance(one, types.CodeType) else repr(one) for one in code.co_consts]
    return [hashlib.sha256(code.co_code).hexdigest(), constants, list(code.co_names)]


def _table(value: Any, kind: str) -> Any:
    """An array or frame by its bytes."""
    if kind == "numpy":
        return [str(value.dtype), list(value.shape), _sha256(value.tobytes())]
    if kind == "pandas":
        from pandas.util import hash_pandas_object

        return [
            [*map(str, value.columns)],
            [*map(str, value.dtypes)],
            _sha256(hash_pandas_object(value).to_numpy().tobytes()),
        ]
    if kind == "polars":
        return [[*map(str, value.columns)], [*map(str, value.dtypes)], _sha256(value.hash_rows().to_numpy().tobytes())]
    return [str(value.schema), _sha256(repr(value.to_pydict()).encode())]


def _sha256(data: bytes) -> str:
    return hashlib.sha256(data).hexdigest()


def _in_order(values: Set[Any], depth: int) -> list[str]:
    return sorted(json.dumps(describe(one, depth), sort_keys=True) for one in values)


_TELLERS: tuple[tuple[Any, Callable[[Any, int], Any]], ...] = (
    (float, lambda value, _: repr(value)),
    (bytes | bytearray, lambda value, _: _sha256(bytes(value))),
    (SecretStr, lambda value, _: None),
    (Path, lambda value, _: str(value)),
    (BaseMessage, lambda value, depth: [value.type, describe(value.content, depth)]),
    (Document, lambda value, depth: describe([value.page_content, value.metadata], depth)),
    (Mapping, lambda value, depth: {str(key): describe(held, depth) for key, held in value.items()}),
    (Sequence, lambda value, depth: [describe(one, depth) for one in value]),
    (Set, _in_order),
    (type, lambda value, _: f"{value.__module__}.{value.__qualname__}"),
    (functools.partial, lambda value, depth: describe([value.func, value.args, value.keywords], depth)),
    (types.BuiltinFunctionType, lambda value, _: f"{value.__module__}.{value.__qualname__}"),
    (types.MethodType, lambda value, depth: [describe(value.__func__, depth), describe(value.__self__, depth)]),
    (BaseLanguageModel, _model),
    (BaseModel, _pydantic),
)
