"""The application's decision on a call, before it is made."""

from __future__ import annotations

import asyncio
import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from typing import Any

from code_chains.toolbox.signatures import Effect

__all__ = ["ApproveTools", "ToolRequest", "aapprove", "approve"]


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
    effect: Effect


ApproveTools = Callable[[ToolRequest], bool | str | Awaitable[bool | str]]
"""Decides whether a call is made: True, False, or the reason for a rejection as text."""
_REJECTED = "It was not approved."


def approve(decide: ApproveTools, request: ToolRequest) -> str:
    """Return why a call is rejected; empty if it is approved. It runs in a thread without an event loop."""
    decision = decide(request)
    if inspect.isawaitable(decision):
        decision = asyncio.run(_awaited(decision))
    return _reason(decision)


async def aapprove(decide: ApproveTools, request: ToolRequest) -> str:
    """Do what `approve` does without blocking the event loop."""
    if inspect.iscoroutinefunction(decide):
        return _reason(await decide(request))
    decision = await asyncio.to_thread(decide, request)
    return _reason(await decision if inspect.isawaitable(decision) else decision)


async def _awaited(decision: Awaitable[bool | str]) -> bool | str:
    return await decision


def _reason(decision: object) -> str:
    """Return the reason of a rejection. Invariant: only True approves, so that a forgotten `return` rejects."""
    if decision is True:
        return ""
    return decision if isinstance(decision, str) and decision.strip() else _REJECTED
