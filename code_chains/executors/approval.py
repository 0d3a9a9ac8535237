"""The application's decisions, before a call is made or a program runs."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import Any

from code_chains.records import ToolEffect


@dataclass(frozen=True)
class ToolRequest:
    """A call that a program wants to make. A model chose the arguments: they are untrusted.

    Attributes:
        name: The name of the tool.
        arguments: Its arguments by name, as the program passed them.
        effect: What the tool's metadata says about its effects.
    """

    name: str
    arguments: Mapping[str, Any]
    effect: ToolEffect


ApproveTools = Callable[[ToolRequest], bool | str | Awaitable[bool | str]]
"""Decides whether a call is made: True, False, or the reason for a rejection as text."""
Decision = Callable[[Any], bool | str | Awaitable[bool | str]]
"""What an application decides with, sync or async, on a call or a program."""


def rejection(decide: Decision, request: object, otherwise: str) -> str:
    """Return why a request is rejected; empty if it is approved. Any thread may call it.

    Args:
        decide: The application's decision.
        request: What it decides on.
        otherwise: The reason if it gives none.
    """
    decision = decide(request)
    if inspect.isawaitable(decision):
        with ThreadPoolExecutor(1) as thread:  # The current thread may be running an event loop of its own.
            decision = thread.submit(asyncio.run, _awaited(decision)).result()
    return _reason(decision, otherwise)


async def arejection(decide: Decision, request: object, otherwise: str) -> str:
    """Do what `rejection` does without blocking the event loop."""
    if inspect.iscoroutinefunction(decide):
        return _reason(await decide(request), otherwise)
    decision = await asyncio.to_thread(decide, request)
    return _reason(await decision if inspect.isawaitable(decision) else decision, otherwise)


async def _awaited(decision: Awaitable[bool | str]) -> bool | str:
    return await decision


def _reason(decision: object, otherwise: str) -> str:
    """Return the reason of a rejection. Invariant: only True approves, so that a forgotten `return` rejects."""
    if decision is True:
        return ""
    return decision if isinstance(decision, str) and decision.strip() else otherwise
