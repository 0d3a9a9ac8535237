"""The root of the records: frozen dataclasses that survive JSON both ways."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import fields
from typing import Any, ClassVar, Self, cast, get_type_hints

from pydantic import ConfigDict, TypeAdapter

_adapters: dict[type, TypeAdapter[Any]] = {}


def _adapter(record: type[Record]) -> TypeAdapter[Any]:
    if record not in _adapters:
        _adapters[record] = TypeAdapter(record)
    return _adapters[record]


class Record:
    """A frozen dataclass that is JSON both ways: `from_json(record.to_json()) == record`."""

    __pydantic_config__: ClassVar[ConfigDict] = ConfigDict(ser_json_bytes="base64", val_json_bytes="base64")

    def to_dict(self) -> dict[str, Any]:
        """Return the record as a dict of JSON values; bytes become base64 text."""
        data: dict[str, Any] = _adapter(type(self)).dump_python(self, mode="json")
        return data

    def to_json(self) -> str:
        """Return the record as one line of JSON."""
        return _adapter(type(self)).dump_json(self).decode()

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """Rebuild a record from what `to_dict` gave; raises `ValueError` for anything else."""
        return cls.from_json(json.dumps(dict(data)))

    @classmethod
    def from_json(cls, text: str) -> Self:
        """Rebuild a record from what `to_json` gave; raises `ValueError` for anything else."""
        record: Self = _adapter(cls).validate_json(text)
        return record


def resolve_types(module: str) -> None:
    """Give the fields of a module's records their types: serializers, as LangGraph's, read them from the class."""
    for record in Record.__subclasses__():
        if record.__module__ == module:
            hints = get_type_hints(record)
            for each in fields(cast("Any", record)):
                each.type = hints[each.name]
