"""Calls of LangChain's tools: what they are invoked with, and what a program receives."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Mapping
from typing import Any

from langchain_core.messages import ToolMessage
from langchain_core.runnables import ensure_config
from langchain_core.tools import BaseTool, StructuredTool, ToolException

from code_chains.callbacks.budget import Budget, find_budgets
from code_chains.executors.approval import ToolRequest
from code_chains.executors.tool_calls import ToolCallError
from code_chains.toolbox.arguments import wrong_arguments


class BudgetGuard:
    """Checks the calls of a run against the schemas of the tools, and the budgets of the run in progress.

    Args:
        tools: The tools, by name.
    """

    def __init__(self, tools: Mapping[str, BaseTool]) -> None:
        self._tools = tools
        self._budgets: list[Budget] = [*find_budgets(ensure_config())]

    @property
    def deadline(self) -> float:
        """When the first budget ends."""
        return min((budget.deadline for budget in self._budgets), default=math.inf)

    def check(self, request: ToolRequest) -> None:
        """Raise unless the arguments are right and the budgets allow a call."""
        # Invariant: LangChain takes a dict with this entry for a call of a model, with arguments inside.
        if request.arguments.get("type") == "tool_call":
            raise ToolCallError("An argument `type` must not be 'tool_call'.", "refused")
        schema = self._tools[request.name].tool_call_schema
        if reason := wrong_arguments(schema, request.arguments, are_all=True):
            raise ToolCallError(f"Wrong arguments for {request.name}: {reason}.", "refused")
        for budget in self._budgets:
            budget.begin_tool_call()


def invoke(tool: BaseTool, arguments: dict[str, Any]) -> Any:
    """Call a tool, and return what a program receives."""
    given = _input(tool, arguments)
    if isinstance(tool, StructuredTool) and tool.func is None:
        return returned_value(asyncio.run(tool.ainvoke(given)))
    return returned_value(tool.invoke(given))


async def ainvoke(tool: BaseTool, arguments: dict[str, Any]) -> Any:
    """Do what `invoke` does without blocking the event loop."""
    return returned_value(await tool.ainvoke(_input(tool, arguments)))


def _input(tool: BaseTool, arguments: dict[str, Any]) -> Any:
    """Return what a tool is invoked with: a call as models make it, where that alone gives the artifact, too."""
    if tool.response_format == "content":
        return arguments
    return {"type": "tool_call", "id": "program", "name": tool.name, "args": arguments}


def is_async(tool: BaseTool) -> bool:
    """Return whether a tool has a coroutine of its own; the default one occupies a thread that cannot be cancelled."""
    if isinstance(tool, StructuredTool) or hasattr(tool, "coroutine"):
        return getattr(tool, "coroutine", None) is not None
    return type(tool)._arun is not BaseTool._arun


def returned_value(returned: Any) -> Any:
    """Return what a program receives: of a message with an artifact of MCP its structured content, else its text.

    MCP's servers put a value that is no object into an object with the one key `result`; it is taken out.

    Raises:
        ToolException: The message is that of a failure.
    """
    if not isinstance(returned, ToolMessage):
        return returned
    if returned.status == "error":
        raise ToolException(returned.text)
    artifact = returned.artifact if isinstance(returned.artifact, Mapping) else {}
    structured = artifact.get("structured_content")
    if isinstance(structured, Mapping):
        return structured["result"] if set(structured) == {"result"} else structured
    blocks = returned.content_blocks
    if isinstance(returned.content, str) or any(block["type"] != "text" for block in blocks):
        return returned.content
    texts = [block["text"] for block in blocks if block["type"] == "text"]
    return texts[0] if len(texts) == 1 else texts
