"""A chain as a tool that a model may call: typed arguments in, text for the model and a record for the app out."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any, Literal

from langchain_core.callbacks import Callbacks
from langchain_core.runnables import Runnable, RunnableConfig
from langchain_core.tools import StructuredTool, ToolException
from pydantic import BaseModel

from code_chains.errors import InputError
from code_chains.inputs import shortened
from code_chains.state import Execution, as_json

__all__ = ["MAX_CHARS", "FormatForModel", "chain_as_tool", "format_as_json", "format_execution"]

MAX_CHARS = 20_000
"""Approximate maximum length of text for a model, in characters."""

FormatForModel = Callable[[Mapping[str, Any]], str]
"""Renders an outcome as text for a model."""


def chain_as_tool(
    chain: Runnable[Any, Any],
    *,
    name: str,
    description: str,
    arguments: type[BaseModel],
    format_for_model: FormatForModel,
) -> StructuredTool:
    """Make a tool whose messages hold text for the model and, as `artifact`, the whole outcome as JSON values.

    The chain's run is a child of the tool's run and sees its config, so a `session_id` in the app's
    `configurable` selects the conversation; a model cannot. Errors about arguments are returned to the model.

    Args:
        chain: Takes a dict and returns a dict.
        name: The name that a model calls.
        description: When a model should call it.
        arguments: The argument schema.
        format_for_model: Renders the outcome for the model.
    """

    def call(
        config: RunnableConfig, callbacks: Callbacks = None, **inputs: Any
    ) -> tuple[str, dict[str, Any]]:
        try:
            outcome = chain.invoke(inputs, _with_callbacks(config, callbacks), return_only_outputs=True)
        except InputError as error:
            raise ToolException(str(error)) from error
        return format_for_model(outcome), as_json(outcome)

    async def acall(
        config: RunnableConfig, callbacks: Callbacks = None, **inputs: Any
    ) -> tuple[str, dict[str, Any]]:
        try:
            outcome = await chain.ainvoke(
                inputs, _with_callbacks(config, callbacks), return_only_outputs=True
            )
        except InputError as error:
            raise ToolException(str(error)) from error
        return format_for_model(outcome), as_json(outcome)

    response: Literal["content_and_artifact"] = "content_and_artifact"
    return StructuredTool.from_function(
        call,
        acall,
        name=name,
        description=description,
        args_schema=arguments,
        response_format=response,
        handle_tool_error=True,
        handle_validation_error=True,
    )


def format_as_json(outcome: Mapping[str, Any]) -> str:
    """Render a whole outcome as JSON, or as plain text if it is a single text; long values are shortened."""
    values = list(outcome.values())
    if len(values) == 1 and isinstance(values[0], str):
        return shortened(values[0], MAX_CHARS)
    return shortened(json.dumps(as_json(outcome), ensure_ascii=False), MAX_CHARS)


def format_execution(execution: Execution) -> str:
    """Render a run's output, its error and the names of its artifacts; shortened, without bytes."""
    parts = [shortened(execution.output, MAX_CHARS)]
    if not execution.ok:
        parts.append(shortened(execution.summary, MAX_CHARS // 4))
    if execution.artifacts:
        parts.append(f"Made: {', '.join(artifact.name for artifact in execution.artifacts)}")
    return "\n".join(part for part in parts if part.strip())


def _with_callbacks(config: RunnableConfig, callbacks: Callbacks) -> RunnableConfig:
    """Return the config of a tool's call with the callbacks of the tool's own run, the parent of the chain's run."""
    return {**config, "callbacks": callbacks} if callbacks is not None else config
