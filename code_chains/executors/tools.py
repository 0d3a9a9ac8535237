"""The calls of tools that a run may make, within the limits of its executor."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable
from typing import Any, TypeVar

from code_chains.errors import ConfigurationError
from code_chains.executors.base import Executor
from code_chains.executors.guest.tools import BYTES_PER_ITEM
from code_chains.executors.guest.untrusted import parse
from code_chains.executors.limits import Limits
from code_chains.toolbox import Toolbox, ToolCalls

T = TypeVar("T")


def open_tool_calls(
    tools: Any,
    limits: Limits,
    encode: Callable[[Any], T],
    loop: asyncio.AbstractEventLoop | None = None,
) -> ToolCalls[T] | None:
    """Return the calls of one run; None without tools.

    Args:
        tools: A toolbox, or tools for one.
        limits: The limits of the run.
        encode: Converts what a tool returned into what is sent to the program.
        loop: The event loop of the caller, if it does not block.

    Raises:
        ConfigurationError: A tool cannot be called by programs.
    """
    toolbox = Toolbox.ensure(tools)
    if toolbox is None:
        return None
    return ToolCalls(
        toolbox, max_calls=limits.tool_calls, seconds=limits.tool_seconds, encode=encode, loop=loop
    )


def read_call(data: bytes, max_bytes: int) -> Any:
    """Read what a program wrote to call a tool.

    Args:
        data: JSON with finite numbers.
        max_bytes: The limit of the arguments, which bounds their items, too.

    Raises:
        ValueError, RecursionError: It is anything else, or holds too many items.
    """
    return parse(data, max_bytes // BYTES_PER_ITEM, _finite)


def _finite(text: str) -> float:
    number = float(text)
    if not math.isfinite(number):
        raise ValueError(f"{text[:100]} is not a finite number")
    return number


def check_takes_tools(executor: Executor) -> None:
    """Raise unless programs can call tools from an executor.

    Raises:
        ConfigurationError: They cannot.
    """
    if not executor.takes_tools:
        remedy = "one whose programs can call tools, such as SandboxExecutor"
        raise ConfigurationError("executor", type(executor).__name__, remedy)
