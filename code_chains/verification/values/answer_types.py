"""Answer types: which type the value of a program must have."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterable, Mapping, Set
from typing import Annotated, Any, get_args

from pydantic import BaseModel, TypeAdapter, ValidationError, WithJsonSchema
from pydantic.errors import PydanticUserError

from code_chains.errors import ConfigurationError
from code_chains.state import as_json
from code_chains.verification.values.json_data import (
    AnswerTypeError,
    as_dict,
    as_frame,
    as_list,
    has_labels,
    to_json_data,
    to_json_text,
    with_labels,
)

__all__ = ["AnswerType", "AnswerTypeError"]

MAX_SCHEMA_CHARS, MAX_NAME_CHARS = 6000, 200
"""Characters of a type that a model is shown."""
MAX_ERRORS = 50_000
"""Parts of a value in another notation, such as dates with a time, that are converted."""
_UNREADABLE = (ValueError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""What values may raise that a program forged."""
_SMALLER = "return fewer parts or levels, or all fields of each part; unions of records need a discriminator"
_RECORDS = {"properties", "$defs", "enum"}
"""Keys of a JSON schema that tells more than the name of its type."""


class AnswerType:
    """A type that values of programs must have: any that pydantic supports, or `pandas.DataFrame`.

    Values come from a program and are read leniently where nothing can be lost: arrays, tuples and ranges are lists;
    series are dicts by their labels, or lists where the type wants those; frames are lists of records; an integral float
    is an integer and a decimal a float; dates may be ISO 8601 text. They are read strictly where a guess could be wrong:
    text is not a number, True is not an integer, a number is not a date. NaN, NaT and NA are None, as JSON has no other
    word for a missing value; infinite numbers have no type.

    Args:
        kind: The type.

    Attributes:
        kind: The type.
        is_frame: Whether it is `pandas.DataFrame`.
        json_schema: The JSON schema of its values.

    Raises:
        ConfigurationError: Pydantic does not support the type, or JSON cannot represent it.

    Example:
        >>> AnswerType(list[float]).validate((1, 2.5))
        [1.0, 2.5]
        >>> AnswerType(dict[str, int]).validate({"a": "12 €"})
        Traceback (most recent call last):
        code_chains.verification.values.json_data.AnswerTypeError: a: expected an integer, got '12 €'
    """

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        self.is_frame: bool = _is_frame_class(kind)
        try:
            if kind is None or isinstance(kind, str | Mapping | list):
                raise TypeError("no type")
            self._adapter: TypeAdapter[Any] = TypeAdapter(list[dict[str, Any]] if self.is_frame else kind)
            self._adapter.rebuild(raise_errors=True)
            # What JSON cannot describe, such as a function, no value of a program could ever satisfy.
            self.json_schema: dict[str, Any] = self._adapter.json_schema(mode="validation")
        except (PydanticUserError, TypeError, NameError) as error:
            remedy = (
                "a type that pydantic supports, such as float, list[str], datetime.date, a BaseModel or a TypedDict, or"
                " pandas.DataFrame; describe a class of your own as a BaseModel or a dataclass. Pydantic says:"
                f" {str(error).partition(chr(10))[0].rstrip('.')}"
            )
            raise ConfigurationError("answer_type", kind, remedy) from error

    def __str__(self) -> str:
        return _name(self.kind)

    def __repr__(self) -> str:
        return f"AnswerType({self})"

    @property
    def annotation(self) -> Any:
        """The type as the annotation of a field of a pydantic model, which JSON schema can describe."""
        if not self.is_frame:
            return self.kind
        return Annotated[Any, WithJsonSchema({"type": "array", "items": {"type": "object"}})]

    @property
    def fingerprint(self) -> list[Any]:
        """What distinguishes it from other types: its schema, and the code of the classes in it, such as validators."""
        return [repr(self.kind), self.json_schema, [*dict.fromkeys(_classes(self.kind))]]

    def format_for_model(self, language: str = "python") -> str:
        """Describe for a model what its program must end with."""
        request = f"The answer is a value of the type {self}."
        if language == "sql":
            request += (
                " The result has one column for it: one row for a single value, a row for each item of a list;"
                " several columns are a list of records."
            )
        elif self.is_frame:
            request += " End the program with an expression that is a pandas DataFrame; do not only print it."
        else:
            request += " End the program with an expression of this type, in plain Python data; do not only print it."
        if not _RECORDS.isdisjoint(self.json_schema):
            text = json.dumps(_without_titles(self.json_schema), ensure_ascii=False)[:MAX_SCHEMA_CHARS]
            request += f" As JSON, where records are dicts, it has this schema: {text}"
        return f"{request} Its unit and rounding are those that the question states."

    def validate(self, value: Any) -> Any:
        """Return a value as this type.

        Raises:
            AnswerTypeError: It has another type.
        """
        if self.is_frame:
            return as_frame(value)
        if not has_labels(value):
            return self._validate(self._data(value))
        try:
            return self._validate(self._data(with_labels(value)))
        except AnswerTypeError:  # The type wants the numbers without their labels.
            return self._validate(self._data(value))

    def _data(self, value: Any) -> Any:
        """Return a value as JSON data."""
        try:
            is_mapping = self.json_schema.get("type") == "object"
            return to_json_data(as_dict(value) if is_mapping else as_list(value))
        except AnswerTypeError:
            raise
        except _UNREADABLE as error:
            raise AnswerTypeError(f"the value cannot be read ({type(error).__name__})") from None

    def _validate(self, data: Any) -> Any:
        from code_chains.analysis.validation_cost import is_too_costly
        from code_chains.verification.values.mismatches import convert_notation, describe_mismatch

        if is_too_costly(self.json_schema, data):
            raise AnswerTypeError(f"expected {self}, got a value that is too large for it: {_SMALLER}")
        holder = [data]
        try:
            return self._read(data)
        except ValidationError as error:
            problems = self._problems(error)
        # Once more with what is the same number or date in another notation.
        for problem in problems:
            convert_notation(holder, problem)
        try:
            return self._read(holder[0])
        except ValidationError as error:
            raise AnswerTypeError(describe_mismatch(self._problems(error), holder)) from None

    def _read(self, data: Any) -> Any:
        value = self._adapter.validate_json(to_json_text(data), strict=True)
        if isinstance(data, dict) and isinstance(value, dict) and len(value) < len(data):
            raise AnswerTypeError("two keys of a dict are the same number or date")
        return value

    def _problems(self, error: ValidationError) -> list[dict[str, Any]]:
        # Invariant: errors are counted first, as the list of them takes a hundred times the memory of the value.
        if error.error_count() > MAX_ERRORS:
            message = f"expected {self}, and {error.error_count():,} parts have another type"
            raise AnswerTypeError(message) from None
        return list(map(dict, error.errors(include_url=False, include_context=False)))

    def to_json(self, value: Any) -> Any:
        """Return a value of this type as JSON data; a frame as a list of records."""
        if self.is_frame:
            return as_json({"value": value})["value"]
        return self._adapter.dump_python(value, mode="json", warnings=False)


def _is_frame_class(kind: Any) -> bool:
    return (
        isinstance(kind, type)
        and kind.__name__ == "DataFrame"
        and kind.__module__.partition(".")[0] == "pandas"
    )


def _without_titles(schema: Any) -> Any:
    """Return a JSON schema without titles, which only repeat the names of fields."""
    if isinstance(schema, list):
        return list(map(_without_titles, schema))
    if not isinstance(schema, dict):
        return schema
    shown = dict(schema)
    if isinstance(shown.get("title"), str):
        del shown["title"]
    return dict(zip(shown, map(_without_titles, shown.values()), strict=True))


def _name(kind: Any) -> str:
    name = (
        kind.__name__ if isinstance(kind, type) and not get_args(kind) else repr(kind).replace("typing.", "")
    )
    for cls in dict.fromkeys(_classes(kind)):
        name = name.replace(f"{cls.__module__}.{cls.__qualname__}", cls.__name__)
    return name[:MAX_NAME_CHARS]


def _classes(kind: Any, within: Set[Any] = frozenset()) -> Iterable[type]:
    """Yield the classes in a type, with those of their fields."""
    for part in get_args(kind):
        yield from _classes(part, within)
    if (
        not isinstance(kind, type)
        or kind in within
        or get_args(kind)
        or kind.__module__ in sys.builtin_module_names
    ):
        return
    yield kind
    fields: Iterable[Any] = ()
    if issubclass(kind, BaseModel):
        fields = [field.annotation for field in kind.model_fields.values()]
    else:
        fields = vars(kind).get("__annotations__", {}).values()
    for field in fields:
        yield from _classes(field, within | {kind})
