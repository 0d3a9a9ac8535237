"""A tool as a program and the model that writes it know it: a Python function."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pydantic import JsonValue

from code_chains.records import ToolEffect

_MAX_DESCRIPTION_CHARS = 300


@dataclass(frozen=True)
class Parameter:
    """A parameter of a tool.

    Attributes:
        name: Its name.
        type: Its type in the notation of Python.
        is_required: Whether it has no default.
        default: Its default.
    """

    name: str
    type: str
    is_required: bool
    default: JsonValue = None

    def __str__(self) -> str:
        return f"{self.name}: {self.type}" + ("" if self.is_required else f" = {self.default!r}")


@dataclass(frozen=True)
class Signature:
    """A tool as a Python function.

    Attributes:
        name: The name of the function.
        parameters: Its parameters, required ones first.
        returns: Its return type in the notation of Python.
        description: Its docstring.
        effect: See `ToolEffect`.
    """

    name: str
    parameters: tuple[Parameter, ...]
    returns: str
    description: str
    effect: ToolEffect

    def __str__(self) -> str:
        """Return the definition that the model is shown, with the first paragraph of the description."""
        about = " ".join(self.description.split("\n\n")[0].split())
        if len(about) > _MAX_DESCRIPTION_CHARS:
            about = f"{about[:_MAX_DESCRIPTION_CHARS]}…"
        return f"def {self.call} -> {self.returns}: ...  # {about}"

    @property
    def call(self) -> str:
        """How it is called: the name with its parameters."""
        return f"{self.name}({', '.join(map(str, self.parameters))})"

    def to_dict(self) -> dict[str, JsonValue]:
        """Return it as JSON, for the sandbox."""
        return {
            "name": self.name,
            "parameters": [
                [each.name, each.type, each.is_required, each.default] for each in self.parameters
            ],
            "returns": self.returns,
            "description": self.description,
        }

    @classmethod
    def from_dict(cls, data: Mapping[str, Any], effect: ToolEffect) -> Signature:
        """Return the signature that `to_dict` has converted."""
        parameters = tuple(Parameter(*fields) for fields in data["parameters"])
        return cls(data["name"], parameters, data["returns"], data["description"], effect)
