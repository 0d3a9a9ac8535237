"""What is wrong with the arguments of a call of a tool."""

from __future__ import annotations

import functools
import itertools
import json
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from pydantic import BaseModel, ValidationError
from pydantic.errors import PydanticUserError
from pydantic.v1 import BaseModel as BaseModelV1
from pydantic.v1 import ValidationError as ValidationErrorV1

from code_chains.analysis.validation_cost import is_too_costly
from code_chains.toolbox.json_schemas import TooMuchError, schema_errors, with_integers

_MAX_PROBLEMS, _MAX_LISTED = 5, 1000
_TOO_MUCH = "arguments: they are too large, or too deep, to be checked"


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
        found = schema_errors(schema, arguments, _MAX_LISTED)
    elif issubclass(schema, BaseModel):
        if is_too_costly(_schema_of(schema), dict(arguments)):
            return _TOO_MUCH
        found = _model_errors(schema, arguments)
    else:
        found = schema_errors(_schema_of(schema), arguments, _MAX_LISTED)
    if not are_all:
        found = (each for each in found if each[0].partition(".")[0] in arguments)
    try:
        return _described(found)
    except TooMuchError:
        return _TOO_MUCH


@functools.lru_cache(maxsize=256)
def _schema_of(model: type[BaseModel] | type[BaseModelV1]) -> dict[str, Any]:
    try:
        return model.model_json_schema() if issubclass(model, BaseModel) else model.schema()
    except PydanticUserError:  # JSON cannot describe it, as it cannot describe a function.
        return {}


def _model_errors(schema: type[BaseModel], arguments: Mapping[str, Any]) -> Iterator[tuple[str, str]]:
    # Invariant: whatever runs a program, True and '1e9' are no amounts. A whole number may be written as 2.0.
    try:
        schema.model_validate_json(json.dumps(with_integers(dict(arguments))), strict=True)
    except ValidationError as error:
        yield from _listed(error)


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
