"""From a JSON schema to the notation of a Python type, which a model and `help()` show."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextvars import ContextVar
from typing import Annotated, Any

from pydantic import BaseModel, StringConstraints, TypeAdapter, ValidationError
from pydantic.errors import PydanticUserError
from pydantic.v1 import BaseModel as BaseModelV1
from pydantic.v1 import ValidationError as ValidationErrorV1
from pydantic_core import SchemaError

from code_chains.analysis.unions import is_too_much_to_read

_MAX_DEPTH = 8
"""Levels of nesting and references; recursive schemas end here."""
_MAX_CHARS = 400
_MAX_FIELDS = 20
_MAX_CHOICES = 20
_MAX_PROBLEMS, _MAX_LISTED, _MAX_SHOWN = 5, 1000, 5
_MAX_STEPS = 200_000
"""Keywords of a JSON schema that are compared with a part of arguments; they take a second or two."""
_TOO_MUCH = "arguments: they are too large, or too deep, to be checked"
_steps: ContextVar[Iterator[int]] = ContextVar("steps")
_PLAIN = {"integer": "int", "number": "float", "boolean": "bool", "null": "None", "string": "str"}
_FORMATS = {"date": "date", "date-time": "datetime", "time": "time", "binary": "bytes"}


def type_of_schema(schema: Any, definitions: Mapping[str, Any] | None = None, depth: int = 0) -> str:
    """Return a JSON schema in the notation of Python: `list[int]`, `{"id": int}`, `Literal['a', 'b'] | None`.

    Args:
        schema: The schema; anything that is none, or says nothing, is `Any`.
        definitions: What `$ref` refers to, by name.
        depth: Levels of objects above it.

    Example:
        >>> type_of_schema({"type": "array", "items": {"type": "integer"}})
        'list[int]'
    """
    if not isinstance(schema, Mapping) or depth > _MAX_DEPTH:
        return "Any"
    known = {**(definitions or {}), **schema.get("$defs", {})}
    if "$ref" in schema:
        name = str(schema["$ref"]).rpartition("/")[2]
        return type_of_schema(known.get(name), known, depth + 1)
    for key, render in _RENDERERS.items():
        if key in schema:
            return render(schema, known, depth)
    return "Any"


def short_type(schema: Any, definitions: Mapping[str, Any] | None = None) -> str:
    """Return what `type_of_schema` does, or `Any` if that is long, as it is for models that refer to each other."""
    rendered = type_of_schema(schema, definitions)
    return rendered if len(rendered) <= _MAX_CHARS else "Any"


def _choices(schema: Mapping[str, Any], known: Mapping[str, Any], depth: int) -> str:
    values = list(schema["enum"]) if "enum" in schema else [schema["const"]]
    listed = ", ".join(map(repr, values[:_MAX_CHOICES]))
    return f"Literal[{listed}{', …' if len(values) > _MAX_CHOICES else ''}]"


def _union(schema: Mapping[str, Any], known: Mapping[str, Any], depth: int) -> str:
    options = [
        type_of_schema(option, known, depth) for option in schema.get("anyOf") or schema.get("oneOf") or ()
    ]
    return " | ".join(dict.fromkeys(options)) or "Any"


def _all_of(schema: Mapping[str, Any], known: Mapping[str, Any], depth: int) -> str:
    parts = schema["allOf"]
    return type_of_schema(parts[0], known, depth) if len(parts) == 1 else "dict"


def _named(schema: Mapping[str, Any], known: Mapping[str, Any], depth: int) -> str:
    kind = schema["type"]
    if isinstance(kind, list):
        options = [type_of_schema({**schema, "type": option}, known, depth) for option in kind]
        return " | ".join(dict.fromkeys(options))
    if kind == "array":
        return _array(schema, known, depth)
    if kind == "object":
        return _object(schema, known, depth)
    if kind == "string":
        return _FORMATS.get(str(schema.get("format")), "str")
    return _PLAIN.get(str(kind), "Any")


def _array(schema: Mapping[str, Any], known: Mapping[str, Any], depth: int) -> str:
    if "prefixItems" in schema:
        items = ", ".join(type_of_schema(item, known, depth + 1) for item in schema["prefixItems"])
        return f"tuple[{items}]"
    item = type_of_schema(schema.get("items"), known, depth + 1)
    name = "set" if schema.get("uniqueItems") else "list"
    return name if item == "Any" else f"{name}[{item}]"


def _object(schema: Mapping[str, Any], known: Mapping[str, Any], depth: int) -> str:
    properties = schema.get("properties") or {}
    if not properties:
        value = type_of_schema(schema.get("additionalProperties"), known, depth + 1)
        return "dict" if value == "Any" else f"dict[str, {value}]"
    fields = [
        f"{name!r}: {type_of_schema(field, known, depth + 1)}"
        for name, field in list(properties.items())[:_MAX_FIELDS]
    ]
    return f"{{{', '.join(fields)}{', …' if len(properties) > _MAX_FIELDS else ''}}}"


_RENDERERS: dict[str, Callable[[Mapping[str, Any], Mapping[str, Any], int], str]] = {
    "enum": _choices,
    "const": _choices,
    "anyOf": _union,
    "oneOf": _union,
    "allOf": _all_of,
    "type": _named,
}
"""The keyword that decides how a schema is rendered: the first one that it has."""


def wrong_arguments(
    schema: type[BaseModel] | type[BaseModelV1] | dict[str, Any],
    arguments: Mapping[str, Any],
    *,
    are_all: bool = False,
) -> str:
    """Return what a schema finds wrong with arguments of a call; empty if nothing is.

    Args:
        schema: A pydantic model, or a JSON schema as MCP has them.
        arguments: The arguments, as far as they are known.
        are_all: Whether these are all of them, so that others are missing.
    """
    if isinstance(schema, dict):
        found = _schema_errors(schema, arguments)
    elif issubclass(schema, BaseModel):
        if is_too_much_to_read(_schema_of(schema), dict(arguments)):
            return _TOO_MUCH
        found = _model_errors(schema, arguments)
    else:
        found = _schema_errors(_schema_of(schema), arguments)
    if not are_all:
        found = (each for each in found if each[0].partition(".")[0] in arguments)
    return _described(found)


@functools.lru_cache(maxsize=256)
def _schema_of(model: type[BaseModel] | type[BaseModelV1]) -> dict[str, Any]:
    try:
        return model.model_json_schema() if issubclass(model, BaseModel) else model.schema()
    except PydanticUserError:  # JSON cannot describe it, as it cannot describe a function.
        return {}


def _schema_errors(schema: dict[str, Any], arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    from jsonschema.exceptions import SchemaError as NoSchemaError
    from jsonschema.validators import validator_for
    from referencing import Registry
    from referencing.exceptions import Unresolvable

    kind = validator_for(schema)
    try:
        kind.check_schema(schema)
    except NoSchemaError:  # Nothing can be said by a schema that is none.
        return
    steps = _steps.set(itertools.count())
    validator = _bounded(kind)(schema, registry=Registry())  # Nothing is fetched, and no file is read.
    try:
        errors = list(itertools.islice(validator.iter_errors(_briefly_shown(dict(arguments))), _MAX_LISTED))
    except (_TooManyStepsError, RecursionError):
        errors = []
        yield _TOO_MUCH.partition(": ")[::2]
    except Unresolvable:  # Nothing can be said by a schema that refers to what is not there.
        errors = []
    finally:
        _steps.reset(steps)
    for error in errors:
        yield ".".join(map(str, error.absolute_path)), error.message[:_MAX_CHARS]


class _List(list[Any]):
    """A list that shows what it begins with: each error of a validator shows the whole of a value."""

    def __repr__(self) -> str:
        shown = [*map(_shown, self[:_MAX_SHOWN]), *["…"] * (len(self) > _MAX_SHOWN)]
        return f"[{', '.join(shown)}]"


class _Dict(dict[Any, Any]):
    """A dict that does so."""

    def __repr__(self) -> str:
        items = itertools.islice(self.items(), _MAX_SHOWN)
        shown = [
            *(f"{_shown(key)}: {_shown(item)}" for key, item in items),
            *["…"] * (len(self) > _MAX_SHOWN),
        ]
        return f"{{{', '.join(shown)}}}"


class _Text(str):
    """A text that does so."""

    __slots__ = ()

    def __repr__(self) -> str:
        return f"{str.__repr__(self[:_MAX_CHARS])}{'…' * (len(self) > _MAX_CHARS)}"


def _shown(value: Any) -> str:
    return (
        "[…]" if isinstance(value, list) else "{…}" if isinstance(value, dict) else repr(value)[:_MAX_CHARS]
    )


def _briefly_shown(value: Any) -> Any:
    """Return JSON whose `repr` is short."""
    if isinstance(value, str):
        return _Text(value)
    if isinstance(value, list | tuple):
        return _List(map(_briefly_shown, value))
    if isinstance(value, dict):
        return _Dict(zip(map(_briefly_shown, value), map(_briefly_shown, value.values()), strict=True))
    return value


class _TooManyStepsError(Exception):
    """Arguments cannot be checked within the steps that are allowed."""


@functools.lru_cache(maxsize=16)
def _bounded(kind: Any) -> Any:
    """Return a validator of JSON schemas whose work is bounded, whatever refers to what in a schema.

    Invariant: it matches no expression of a schema by `re`, which holds up all threads; items are compared as a set.
    """
    from jsonschema import validators

    own = {
        "uniqueItems": _unique_items,
        "pattern": _pattern,
        "patternProperties": None,
        "additionalProperties": _additional,
        "unevaluatedProperties": None,
    }
    keywords = {name: own.get(name, check) for name, check in kind.VALIDATORS.items()}
    return validators.extend(kind, {name: _counted(check or _unchecked) for name, check in keywords.items()})


def _counted(check: Callable[..., Any]) -> Callable[..., Any]:
    def counted(validator: Any, value: Any, instance: Any, schema: Any) -> Iterator[Any]:
        if next(_steps.get()) > _MAX_STEPS:
            raise _TooManyStepsError
        yield from check(validator, value, instance, schema) or ()

    return counted


def _unchecked(*_: Any) -> None:
    """Accept anything."""


def _pattern(validator: Any, pattern: str, text: Any, schema: Any) -> Iterator[Exception]:
    """Yield an error if a text does not match, in time that is linear; what only `re` reads is not checked."""
    from jsonschema.exceptions import ValidationError as SchemaValidationError

    expression = _linear_expression(pattern)
    if expression is not None and isinstance(text, str):
        try:
            expression.validate_python(text)
        except ValidationError:
            yield SchemaValidationError(f"it does not match {pattern!r}")


@functools.lru_cache(maxsize=256)
def _linear_expression(pattern: str) -> TypeAdapter[str] | None:
    try:
        return TypeAdapter(Annotated[str, StringConstraints(pattern=pattern)])
    except SchemaError:  # It looks around, or back.
        return None


def _additional(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema._keywords import additionalProperties

    if "patternProperties" not in schema:
        yield from additionalProperties(validator, allowed, instance, schema) or ()


def _unique_items(validator: Any, is_unique: bool, items: Any, schema: Any) -> Iterator[Exception]:
    """Yield an error if two items are the same."""
    from jsonschema.exceptions import ValidationError as SchemaValidationError

    if is_unique and isinstance(items, list):
        texts = (json.dumps(_with_integers(item), sort_keys=True) for item in items)
        if len(set(texts)) < len(items):
            yield SchemaValidationError("two of the items are the same")


def _model_errors(schema: type[BaseModel], arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    # Invariant: whatever runs a program, True and '1e9' are no amounts. A whole number may be written as 2.0.
    try:
        schema.model_validate_json(json.dumps(_with_integers(dict(arguments))), strict=True)
    except ValidationError as error:
        yield from _listed(error)


def _with_integers(value: Any) -> Any:
    """Return JSON in which floats that are whole numbers are integers."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, list | tuple):
        return list(map(_with_integers, value))
    if isinstance(value, dict):
        return dict(zip(value, map(_with_integers, value.values()), strict=True))
    return value


def describe_wrong_arguments(error: ValidationError | ValidationErrorV1) -> str:
    """Return what is wrong with each argument of a call, for the model or program that chose them."""
    return _described(_listed(error))


def _described(found: Iterable[tuple[str, str]]) -> str:
    return "; ".join(
        f"{place or 'arguments'}: {reason}" for place, reason in itertools.islice(found, _MAX_PROBLEMS)
    )


def _listed(error: ValidationError | ValidationErrorV1) -> Iterator[tuple[str, str]]:
    """Yield the place and the reason of each error."""
    # Invariant: errors are counted first, as the list of them takes a hundred times the memory of the arguments.
    if isinstance(error, ValidationError) and error.error_count() > _MAX_LISTED:
        yield "arguments", f"{error.error_count():,} of their parts have another type"
        return
    for wrong in error.errors():
        yield ".".join(map(str, wrong["loc"])), wrong["msg"]
