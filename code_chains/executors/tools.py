"""The calls of tools that a run may make, within the limits of its executor."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sized
from importlib import import_module
from typing import Any, TypeVar

from code_chains.errors import ConfigurationError
from code_chains.executors.base import Executor
from code_chains.executors.guest.untrusted import parse
from code_chains.executors.limits import Limits
from code_chains.executors.tool_calls import ToolCalls, Tools

T = TypeVar("T")


def open_tool_calls(
    tools: Any,
    limits: Limits,
    encode: Callable[[Any], T],
    loop: asyncio.AbstractEventLoop | None = None,
) -> ToolCalls[T] | None:
    """Return the calls of one run; None without tools.

    Args:
        tools: `Tools`; or LangChain's tools and typed functions, which a `Toolbox` makes callable.
        limits: The limits of the run.
        encode: Converts what a tool returned into what is sent to the program.
        loop: The event loop of the caller, if it does not block.

    Raises:
        ConfigurationError: A tool cannot be called by programs.
    """
    if tools is None or (isinstance(tools, Sized) and not len(tools)):
        return None
    return ToolCalls(
        tools if isinstance(tools, Tools) else _as_tools(tools),
        max_calls=limits.tool_calls,
        seconds=limits.tool_seconds,
        encode=encode,
        loop=loop,
    )


def _as_tools(tools: Any) -> Tools:
    """Return LangChain's tools, or typed functions, as programs call them.

    Invariant: only this needs LangChain, so that executors run without it.
    """
    try:
        toolbox = import_module("code_chains.toolbox.toolbox")
    except ImportError as error:
        because = f"lists of tools need LangChain ({error})"
        remedy = "an object with the methods of code_chains.executors.tool_calls.Tools"
        raise ConfigurationError("tools", tools, remedy, because=because) from error
    own: Tools = toolbox.Toolbox(tools)
    return own


def read_call(data: bytes, max_bytes: int) -> Any:
    """Read what a program wrote to call a tool.

    Args:
        data: JSON with finite numbers.
        max_bytes: The limit of the arguments, which bounds their items, too.

    Raises:
        ValueError, RecursionError: It is anything else, or holds too many items.
    """
    from code_chains.executors.guest.tools import BYTES_PER_ITEM

    if len(data) > max_bytes:
        raise ValueError(f"{len(data):,} bytes, of which {max_bytes:,} are allowed")
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
