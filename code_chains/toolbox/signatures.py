"""The signatures of LangChain's tools: name, parameters, return type and description."""

from __future__ import annotations

import inspect
import keyword
from collections.abc import Callable, Mapping
from typing import Any, get_type_hints

from langchain_core.tools import BaseTool
from pydantic import TypeAdapter
from pydantic.errors import PydanticUserError

from code_chains.errors import ConfigurationError
from code_chains.executors.signatures import Parameter, Signature
from code_chains.records import ToolEffect
from code_chains.toolbox.schemas import short_type


def signature_of(tool: BaseTool) -> Signature:
    """Return the signature of a tool; arguments that the application injects are not part of it.

    Raises:
        ConfigurationError: Its arguments cannot be those of a Python function.
    """
    _refuse_variable_arguments(tool)
    schema = schema_of(tool)
    properties: Mapping[str, Any] = schema.get("properties") or {}
    required = set(schema.get("required") or ())
    parameters = []
    for name, field in properties.items():
        if not name.isidentifier() or keyword.iskeyword(name):
            because = f"its parameter {name!r} is not a valid Python name"
            raise ConfigurationError("tools", tool.name, "a function that wraps it", because=because)
        default = field.get("default") if isinstance(field, Mapping) else None
        kind = short_type(field, schema.get("$defs"))
        parameters.append(Parameter(name, kind, name in required, default))
    parameters.sort(key=lambda parameter: not parameter.is_required)
    return Signature(tool.name, tuple(parameters), _return_type(tool), _description(tool), effect_of(tool))


def _refuse_variable_arguments(tool: BaseTool) -> None:
    """Refuse `*args` and `**kwargs` where LangChain makes ordinary parameters of them, with which no call succeeds."""
    if getattr(tool, "func", None) is None and getattr(tool, "coroutine", None) is None:
        return
    variable = {inspect.Parameter.VAR_POSITIONAL: "*", inspect.Parameter.VAR_KEYWORD: "**"}
    for name, parameter in inspect.signature(_function_of(tool)).parameters.items():
        if parameter.kind in variable and name in tool.args:
            remedy = (
                f"a function without {variable[parameter.kind]}{name}; give it named parameters, or a list"
            )
            raise ConfigurationError("tools", tool.name, remedy)


def effect_of(tool: BaseTool) -> ToolEffect:
    """Return what the metadata of a tool says about its effects: `pure`, `read_only`, or MCP's `readOnlyHint`."""
    metadata = tool.metadata or {}
    if metadata.get("pure") is True:
        return "pure"
    is_read_only = metadata.get("read_only") is True or metadata.get("readOnlyHint") is True
    return "read_only" if is_read_only else "other"


def schema_of(tool: BaseTool) -> Mapping[str, Any]:
    """Return the JSON schema of the arguments that a program gives.

    Raises:
        ConfigurationError: They have none.
    """
    try:
        schema = tool.tool_call_schema
        found = schema if isinstance(schema, dict) else TypeAdapter(schema).json_schema()
    except (PydanticUserError, TypeError, ValueError) as error:
        remedy = f"a tool whose arguments have a JSON schema ({str(error).splitlines()[0]})"
        raise ConfigurationError("tools", tool.name, remedy) from error
    return found


def _description(tool: BaseTool) -> str:
    """Return the description of a tool without the signature that LangChain may have put before it."""
    return inspect.cleandoc(tool.description or "").strip()


def _return_type(tool: BaseTool) -> str:
    """Return the annotation of what a tool returns, as the program will see it, or MCP's `outputSchema` in its metadata."""
    if schema := (tool.metadata or {}).get("outputSchema"):
        fields = schema.get("properties") or {}
        return short_type(fields["result"] if set(fields) == {"result"} else schema, schema.get("$defs"))
    function = _function_of(tool)
    try:
        annotation = get_type_hints(function).get("return", Any)
    except (TypeError, NameError, AttributeError):
        return "Any"
    if annotation is None or annotation is type(None):
        return "None"
    if isinstance(annotation, type) and annotation.__module__.partition(".")[0] in (
        "pandas",
        "polars",
        "numpy",
    ):
        return annotation.__name__
    if annotation is bytes:
        return "bytes"
    try:
        return short_type(TypeAdapter(annotation).json_schema(mode="serialization"))
    except (PydanticUserError, TypeError, ValueError):
        return "Any"


def _function_of(tool: BaseTool) -> Callable[..., Any]:
    """Return the function that a tool calls."""
    function = getattr(tool, "func", None) or getattr(tool, "coroutine", None)
    return function or type(tool)._run
