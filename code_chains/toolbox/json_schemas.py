"""Values that programs pass, against the JSON schema of a tool, as MCP servers bring them."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Callable, Iterator, Mapping
from contextvars import ContextVar
from typing import Annotated, Any

from pydantic import StringConstraints, TypeAdapter, ValidationError

_MAX_CHARS, _MAX_SHOWN = 400, 5
_MAX_STEPS = 200_000
"""Keywords of a JSON schema that are compared with a part of a value; they take a second or two."""
_steps: ContextVar[Iterator[int]] = ContextVar("steps")


class TooMuchError(Exception):
    """Arguments cannot be checked within the steps that are allowed."""


def schema_errors(
    schema: dict[str, Any], arguments: Mapping[str, Any], max_errors: int
) -> Iterator[tuple[str, str]]:
    """Yield the place and the reason of what is wrong with arguments by a JSON schema.

    Invariant: whatever a schema says, its work is bounded, it matches no expression by `re`, which holds up all threads, it
    reads no file and opens no address, and no error shows more than a part of a value.

    Raises:
        TooMuchError: It takes too many steps.
    """
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
        errors = list(itertools.islice(validator.iter_errors(_briefly_shown(dict(arguments))), max_errors))
    except RecursionError:
        raise TooMuchError from None
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
    if isinstance(value, list | dict):
        return "[…]" if isinstance(value, list) else "{…}"
    return repr(value)[:_MAX_CHARS]


def _briefly_shown(value: Any) -> Any:
    """Return JSON whose `repr` is short."""
    if isinstance(value, str):
        return _Text(value)
    if isinstance(value, list | tuple):
        return _List(map(_briefly_shown, value))
    if isinstance(value, dict):
        return _Dict(zip(map(_briefly_shown, value), map(_briefly_shown, value.values()), strict=True))
    return value


@functools.lru_cache(maxsize=16)
def _bounded(kind: Any) -> Any:
    """Return a validator of JSON schemas whose work is bounded, whatever refers to what in a schema."""
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
            raise TooMuchError
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
    except Exception:  # It looks around or back, or is none; the error has no public class.
        return None


def _additional(validator: Any, allowed: Any, instance: Any, schema: Any) -> Iterator[Any]:
    from jsonschema._keywords import additionalProperties

    if "patternProperties" not in schema:
        yield from additionalProperties(validator, allowed, instance, schema) or ()


def _unique_items(validator: Any, is_unique: bool, items: Any, schema: Any) -> Iterator[Exception]:
    """Yield an error if two items are the same."""
    from jsonschema.exceptions import ValidationError as SchemaValidationError

    if is_unique and isinstance(items, list):
        texts = (json.dumps(with_integers(item), sort_keys=True) for item in items)
        if len(set(texts)) < len(items):
            yield SchemaValidationError("two of the items are the same")


def with_integers(value: Any) -> Any:
    """Return JSON in which floats that are whole numbers are integers."""
    if isinstance(value, float):
        return int(value) if value.is_integer() else value
    if isinstance(value, list | tuple):
        return list(map(with_integers, value))
    if isinstance(value, dict):
        return dict(zip(value, map(with_integers, value.values()), strict=True))
    return value
