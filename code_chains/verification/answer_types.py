"""Answer types: which type the value of a program must have, and what differs if it has another one."""

from __future__ import annotations

import datetime
import decimal
import json
import math
import sys
from collections.abc import Callable, Iterable, Mapping, Set
from typing import Annotated, Any, get_args

from pydantic import BaseModel, TypeAdapter, ValidationError, WithJsonSchema
from pydantic.errors import PydanticUserError

from code_chains.errors import ConfigurationError
from code_chains.state import as_json, with_index_as_column

__all__ = ["AnswerType", "AnswerTypeError"]

MAX_SCHEMA_CHARS, MAX_NAME_CHARS = 6000, 200
"""Characters of a type that a model is shown."""
MAX_ERRORS, MAX_PATH_CHARS, MAX_INPUT_CHARS, MAX_ITEMS = 5, 100, 60, 1_000_000
MAX_EXPONENT = 400
"""Decimals beyond it are not converted: their digits would take too much memory."""
_UNREADABLE = (ValueError, TypeError, AttributeError, ArithmeticError, RecursionError)
"""What values may raise that a program forged."""
_MIDNIGHT = datetime.time()
_RECORDS = {"properties", "$defs", "enum"}
"""Keys of a JSON schema that tells more than the name of its type."""
_EXPECTED = {
    "int_type": "an integer",
    "int_from_float": "an integer",
    "float_type": "a number",
    "decimal_type": "a number",
    "string_type": "text",
    "bool_type": "True or False",
    "date_type": "a date (YYYY-MM-DD)",
    "date_parsing": "a date (YYYY-MM-DD)",
    "date_from_datetime_parsing": "a date (YYYY-MM-DD)",
    "datetime_type": "a date with a time (ISO 8601)",
    "datetime_parsing": "a date with a time (ISO 8601)",
    "list_type": "a list",
    "tuple_type": "a list",
    "set_type": "a list",
    "frozen_set_type": "a list",
    "dict_type": "a dict",
    "model_type": "a dict",
    "dataclass_type": "a dict",
    "model_attributes_type": "a dict",
    "missing": "a value here, but the key is missing",
    "none_required": "None",
}
"""What the most frequent errors of pydantic expect, in few words; for others there is pydantic's own message."""


class AnswerTypeError(ValueError):
    """A value does not have the type; the message names the path of each part that differs."""


class AnswerType:
    """A type that values of programs must have: any that pydantic supports, or `pandas.DataFrame`.

    Values come from a program and are read leniently where nothing can be lost: arrays, series, tuples and ranges are
    lists; frames are lists of records; an integral float is an integer and a decimal a float; dates may be ISO 8601
    text. They are read strictly where a guess could be wrong: text is no number, True is no integer, a number is no date.
    NaN, NaT and NA are None, as JSON has no other word for a missing value; infinite numbers have no type.

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
        code_chains.verification.answer_types.AnswerTypeError: a: expected an integer, got '12 €'
    """

    def __init__(self, kind: Any) -> None:
        self.kind = kind
        self.is_frame = _is_frame_class(kind)
        try:
            if kind is None or isinstance(kind, str | Mapping | list):
                raise TypeError("no type")
            self._adapter: TypeAdapter[Any] = TypeAdapter(list[dict[str, Any]] if self.is_frame else kind)
            self._adapter.rebuild(raise_errors=True)
            # What JSON cannot describe, such as a function, no value of a program could ever satisfy.
            self.json_schema = self._adapter.json_schema(mode="validation")
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

    def format_for_model(self) -> str:
        """Describe for a model what its program must end with."""
        request = f"The answer is a value of the type {self}."
        if self.is_frame:
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
            return _as_frame(value)
        try:
            data = _jsonable(_as_dict(value) if self._is_mapping else _as_list(value))
        except AnswerTypeError:
            raise
        except _UNREADABLE as error:
            raise AnswerTypeError(f"the value cannot be read ({type(error).__name__})") from None
        return self._validate(data)

    def _validate(self, data: Any) -> Any:
        holder = [data]
        try:
            return self._adapter.validate_json(_dumps(data), strict=True)
        except ValidationError as error:
            problems = error.errors(include_url=False, include_context=False)
        # Once more with what is the same number or date in another notation.
        for problem in problems:
            _convert(holder, problem)
        try:
            return self._adapter.validate_json(_dumps(holder[0]), strict=True)
        except ValidationError as error:
            raise AnswerTypeError(_describe(error, holder)) from None

    @property
    def _is_mapping(self) -> bool:
        return self.json_schema.get("type") == "object"

    def to_json(self, value: Any) -> Any:
        """Return a value of this type as JSON data; a frame as a list of records."""
        if self.is_frame:
            return as_json({"value": value})["value"]
        return self._adapter.dump_python(value, mode="json", warnings=False)


# -- from values of programs to JSON ---------------------------------------------------------------------------


def _jsonable(value: Any) -> Any:
    """Return a value as JSON data; decimals, dates and times stay as they are until it is written."""
    if isinstance(value, float):
        return None if math.isnan(value) else value
    if isinstance(value, decimal.Decimal):
        return value if value.is_finite() else None
    if value is None or isinstance(value, bool | int | str):
        return value
    if isinstance(value, Mapping):
        return _object(value)
    if isinstance(value, bytes):
        return _decoded(value)
    if type(value).__module__.partition(".")[0] in ("pandas", "numpy"):
        return _of_library(value)
    if isinstance(value, range):  # Many short ones in a list could stand for any number of items.
        raise AnswerTypeError(f"expected a list, got {_short(value)}")
    if isinstance(value, Iterable):
        return [_jsonable(item) for item in value]
    return value


def _of_library(value: Any) -> Any:
    kind = type(value).__name__
    if kind == "DataFrame":
        table = with_index_as_column(value)
        if not table.columns.is_unique:
            raise AnswerTypeError("two columns of a table have the same name")
        return [_jsonable(record) for record in table.to_dict("records")]
    if kind == "Timestamp":
        return value.to_pydatetime()
    if kind in ("NaTType", "NAType"):
        return None
    return _jsonable(value.tolist())


def _as_dict(value: Any) -> Any:
    """Return a series as a dict by its index, and a frame as a dict of its columns."""
    if type(value).__module__.partition(".")[0] != "pandas" or not hasattr(value, "index"):
        return value
    keys = value.index if value.ndim == 1 else value.columns
    if not keys.is_unique:
        raise AnswerTypeError("two keys of a table are the same")
    return value.to_dict() if value.ndim == 1 else value.to_dict("list")


def _as_list(value: Any) -> Any:
    if isinstance(value, range) and len(value) <= MAX_ITEMS:
        return list(value)
    return value


def _object(value: Mapping[Any, Any]) -> dict[str, Any]:
    data = {_key(key): _jsonable(item) for key, item in value.items()}
    if len(data) != len(value):
        raise AnswerTypeError("two keys of a dict are the same as text")
    return data


def _key(key: Any) -> str:
    if isinstance(key, str):
        return key
    if isinstance(key, bool):
        return str(key).lower()
    if isinstance(key, Mapping | Set | tuple | bytes):
        raise AnswerTypeError(f"expected text, a number or a date as the key of a dict, got {_short(key)}")
    return _text(_jsonable(key))


def _decoded(data: bytes) -> str:
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise AnswerTypeError(f"expected bytes of UTF-8, got {_short(data)}") from None


def _text(value: Any) -> str:
    """Return what JSON has no word for as text."""
    if isinstance(value, complex):
        return str(value).strip("()")
    if isinstance(value, datetime.datetime | datetime.date | datetime.time):
        return value.isoformat()
    if isinstance(value, datetime.timedelta):
        text: str = json.loads(TypeAdapter(datetime.timedelta).dump_json(value))
        return text
    return str(value)


def _dumps(data: Any) -> str:
    try:
        return json.dumps(data, default=_text, allow_nan=False)
    except ValueError as error:  # Or an integer of more than 4300 digits.
        raise AnswerTypeError(
            f"expected finite numbers, and integers of at most 4300 digits ({error})"
        ) from None


# -- the same in another notation ------------------------------------------------------------------------------


def _convert(holder: list[Any], problem: Any) -> None:
    """Replace what an error is about by the same in the notation that is expected, if that is possible."""
    parent, key = _parent(holder, problem["loc"])
    if parent is None:
        return
    for is_case, convert in _CONVERSIONS.get(problem["type"], ()):
        if is_case(parent[key]):
            parent[key] = convert(parent[key])
            return


def _parent(holder: list[Any], location: tuple[Any, ...]) -> tuple[Any, Any]:
    """Return the list or dict that holds what a location points to; None if it names parts of the type, as of a union."""
    parent, key = holder, 0
    for part in location:
        child = parent[key]
        is_index = isinstance(child, list) and isinstance(part, int) and part < len(child)
        if is_index or (isinstance(child, dict) and part in child):
            parent, key = child, part
        elif isinstance(part, int):
            return None, None
    return parent, key


def _is_integral(value: Any) -> bool:
    return (isinstance(value, float) and value.is_integer()) or (
        _is_small_decimal(value) and value == int(value)
    )


def _is_small_decimal(value: Any) -> bool:
    return isinstance(value, decimal.Decimal) and abs(value.adjusted()) < MAX_EXPONENT


def _is_midnight(value: Any) -> bool:
    return isinstance(value, datetime.datetime) and value.time() == _MIDNIGHT and value.tzinfo is None


def _is_date(value: Any) -> bool:
    return isinstance(value, datetime.date) and not isinstance(value, datetime.datetime)


def _is_iso_date(value: Any) -> bool:
    return isinstance(value, str) and len(value) == len("2024-01-31") and value[4:5] == "-"


_Case = tuple[Callable[[Any], bool], Callable[[Any], Any]]
_TO_DATE: tuple[_Case, ...] = ((_is_midnight, lambda value: value.date()),)
_TO_DATETIME: tuple[_Case, ...] = (
    (_is_date, lambda value: datetime.datetime.combine(value, _MIDNIGHT)),
    (_is_iso_date, lambda value: f"{value}T00:00:00"),
)
_CONVERSIONS: dict[str, tuple[_Case, ...]] = {
    **dict.fromkeys(("int_type", "int_from_float"), ((_is_integral, int),)),
    "float_type": ((_is_small_decimal, float),),
    **dict.fromkeys(("date_type", "date_parsing", "date_from_datetime_parsing"), _TO_DATE),
    **dict.fromkeys(("datetime_type", "datetime_parsing"), _TO_DATETIME),
}


# -- frames ----------------------------------------------------------------------------------------------------


def _is_frame_class(kind: Any) -> bool:
    return (
        isinstance(kind, type)
        and kind.__name__ == "DataFrame"
        and kind.__module__.partition(".")[0] == "pandas"
    )


def _as_frame(value: Any) -> Any:
    """Return a frame, or what is one in another form: a series, a list of records, a dict of columns."""
    import pandas

    if isinstance(value, pandas.DataFrame):
        return value
    if isinstance(value, pandas.Series):
        return value.to_frame()
    is_records = isinstance(value, list) and all(isinstance(record, dict) for record in value)
    is_columns = (
        isinstance(value, dict) and bool(value) and all(isinstance(column, list) for column in value.values())
    )
    if not (is_records or is_columns):
        raise AnswerTypeError(f"expected a pandas DataFrame, got {_short(value)}")
    try:
        return pandas.DataFrame(value)
    except ValueError as error:
        raise AnswerTypeError(
            f"expected a pandas DataFrame, got columns of different lengths ({error})"
        ) from None


# -- texts -----------------------------------------------------------------------------------------------------


def _describe(error: ValidationError, holder: list[Any]) -> str:
    """Describe what differs: the path of each part, what is expected there, and what is there instead."""
    problems = error.errors(include_url=False, include_context=False)
    lines = []
    for problem in problems[:MAX_ERRORS]:
        expected = _EXPECTED.get(problem["type"])
        message = f"expected {expected}" if expected else problem["msg"]
        value = "" if problem["type"] == "missing" else f", got {_short(_at(holder, problem))}"
        lines.append(f"{_path(problem['loc'])}{message}{value}")
    if len(problems) > MAX_ERRORS:
        lines.append(f"and {len(problems) - MAX_ERRORS} more")
    return "; ".join(lines)


def _at(holder: list[Any], problem: Any) -> Any:
    """Return what an error is about, as the program had it."""
    parent, key = _parent(holder, problem["loc"])
    return problem["input"] if parent is None else parent[key]


def _path(location: Iterable[Any]) -> str:
    """Return a location as Python writes it: `items[3].total: `; empty for the value itself."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location).removeprefix(
        "."
    )
    return f"{text[:MAX_PATH_CHARS]}: " if text else ""


def _short(value: Any) -> str:
    try:
        text = "None (or NaN)" if value is None else repr(value)
    except ValueError:  # An integer of more than 4300 digits.
        text = type(value).__name__
    return text if len(text) <= MAX_INPUT_CHARS else f"{text[:MAX_INPUT_CHARS]}…"


def _without_titles(schema: Any) -> Any:
    """Return a JSON schema without titles, which only repeat the names of fields."""
    if isinstance(schema, list):
        return [_without_titles(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    shown = {key: part for key, part in schema.items() if key != "title" or not isinstance(part, str)}
    return {key: _without_titles(part) for key, part in shown.items()}


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
