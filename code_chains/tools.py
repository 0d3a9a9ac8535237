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

__all__ = ["LONGEST", "Told", "chain_as_tool", "told_as_json", "told_of_run"]

LONGEST = 20_000
"""Longest text that a model is told, in characters, or nearly so."""

Told = Callable[[Mapping[str, Any]], str]
"""What a model is told of an outcome."""


def chain_as_tool(
    chain: Runnable[Any, Any], *, name: str, description: str, arguments: type[BaseModel], told: Told
) -> StructuredTool:
    """Make a tool whose messages hold text for the model and, as `artifact`, the whole outcome as JSON values.

    The run of the chain is a child of the tool's run and sees its config, so a `session_id` among the app's
    `configurable` names the conversation; a model cannot. Arguments that the chain refuses are told to the model.

    Args:
        chain: Takes a dict and gives a dict.
        name: What a model calls.
        description: When a model should call it.
        arguments: Their types, and what they mean.
        told: What the model is told.
    """

    def call(config: RunnableConfig, callbacks: Callbacks = None, **given: Any) -> tuple[str, dict[str, Any]]:
        try:
            return _both(chain.invoke(given, _below(config, callbacks), return_only_outputs=True), told)
        except InputError as error:
            raise ToolException(str(error)) from error

    async def acall(config: RunnableConfig, callbacks: Callbacks = None, **given: Any) -> tuple[str, dict[str, Any]]:
        try:
            return _both(await chain.ainvoke(given, _below(config, callbacks), return_only_outputs=True), told)
        except InputError as error:
            raise ToolException(str(error)) from error

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


def told_as_json(outcome: Mapping[str, Any]) -> str:
    """All of an outcome, shortened where it is long; a single text as it is."""
    values = list(outcome.values())
    single = len(values) == 1 and isinstance(values[0], str)
    return shortened(values[0] if single else json.dumps(as_json(outcome), ensure_ascii=False), LONGEST)


def told_of_run(execution: Execution) -> str:
    """What a run printed, why it failed, and names of what it made: shortened, and no bytes."""
    parts = [shortened(execution.output, LONGEST)]
    if not execution.ok:
        parts.append(shortened(execution.summary, LONGEST // 4))
    if execution.artifacts:
        parts.append(f"Made: {', '.join(artifact.name for artifact in execution.artifacts)}")
    return "\n".join(part for part in parts if part.strip())


def _below(config: RunnableConfig, callbacks: Callbacks) -> RunnableConfig:
    """The config of a tool's call, with the callbacks of the tool's own run: the chain's is its child."""
    return {**config, "callbacks": callbacks} if callbacks is not None else config


def _both(outcome: Mapping[str, Any], told: Told) -> tuple[str, dict[str, Any]]:
    return told(outcome), as_json(outcome)
