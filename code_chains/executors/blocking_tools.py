"""Tools as functions for an interpreter that runs in a thread of this process, and waits for each call."""

from __future__ import annotations

import asyncio
import contextlib
import inspect
import json
import threading
import time
from collections.abc import Callable
from concurrent.futures import Future
from typing import Any

from code_chains.executors.signatures import Signature
from code_chains.executors.tool_calls import PendingCall, ToolCallError, ToolCalls

_CHECK_INTERVAL_S = 0.05
"""Pause between two looks whether a call takes too long."""


def blocking_functions(
    calls: ToolCalls[Any], max_bytes: int, read: Callable[[bytes, int], Any]
) -> dict[str, Callable[..., Any]]:
    """Return a function for each tool; what it raises is a `RuntimeError` with a message for the program.

    Args:
        calls: Makes the calls.
        max_bytes: The limit of the arguments of one call, as JSON.
        read: Reads that JSON, within the limit.
    """
    signatures = calls.toolbox.signatures.values()
    return {signature.name: _function(calls, signature, max_bytes, read) for signature in signatures}


def _function(
    calls: ToolCalls[Any], signature: Signature, max_bytes: int, read: Callable[[bytes, int], Any]
) -> Callable[..., Any]:
    parameters = inspect.Signature([_parameter(each) for each in signature.parameters])

    def tool(*args: Any, **kwargs: Any) -> Any:
        bound = parameters.bind(*args, **kwargs)
        try:
            text = json.dumps(bound.arguments, allow_nan=False, default=_iso_text)
            if len(text) > max_bytes:
                raise ValueError(f"it takes {len(text):,} bytes, and {max_bytes:,} are allowed")
            return wait_for(calls, calls.begin(signature.name, read(text.encode(), max_bytes)))
        except ToolCallError as error:
            raise RuntimeError(str(error)) from None
        except (ValueError, RecursionError) as error:
            raise TypeError(f"Arguments of {signature.name} cannot be passed: {error}") from None

    return tool


def _parameter(parameter: Any) -> inspect.Parameter:
    default = inspect.Parameter.empty if parameter.is_required else parameter.default
    return inspect.Parameter(parameter.name, inspect.Parameter.POSITIONAL_OR_KEYWORD, default=default)


def _iso_text(value: Any) -> str:
    """Return a date as text."""
    if hasattr(value, "isoformat"):
        return str(value.isoformat())
    raise TypeError(f"a {type(value).__name__} cannot be passed to a tool")


def wait_for(calls: ToolCalls[Any], pending: PendingCall) -> Any:
    """Make a call and wait for its result, or abandon it at its deadline.

    Raises:
        ToolCallError: It failed, or took too long.
    """
    future = _start(calls, pending)
    while True:
        with contextlib.suppress(TimeoutError):
            return future.result(_CHECK_INTERVAL_S)
        if time.monotonic() >= pending.deadline:
            error = calls.abandon(pending)
            future.cancel()
            raise error


def _start(calls: ToolCalls[Any], pending: PendingCall) -> Future[Any]:
    context = calls.context.copy()
    if calls.loop is not None and calls.is_async(pending):
        return context.run(asyncio.run_coroutine_threadsafe, calls.acall(pending), calls.loop)
    future: Future[Any] = Future()
    future.set_running_or_notify_cancel()  # Invariant: a thread cannot be cancelled, and sets its result in any case.

    def make() -> None:
        try:
            future.set_result(calls.call(pending))
        except ToolCallError as error:
            future.set_exception(error)

    threading.Thread(target=context.run, args=(make,), daemon=True, name="code-chains-tool").start()
    return future
