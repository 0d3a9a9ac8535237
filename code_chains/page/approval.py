"""Programs that wait for a visitor's yes before they run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass

from code_chains.chains.validate import ApprovalRequest

__all__ = ["ASKED", "PATIENCE", "Approval", "approve"]

PATIENCE = 300.0
"""Seconds without a word after which a program counts as refused."""
ASKED: ContextVar[Callable[[ApprovalRequest], Awaitable[bool | str]]] = ContextVar("code_chains_page_asked")
"""Who is asked in a task, and in those that it starts."""


@dataclass(frozen=True, eq=False)
class Approval:
    """A program that is shown to its visitor, and what is said to it."""

    request: ApprovalRequest
    said: asyncio.Future[bool]

    def say(self, yes: bool) -> None:
        """Say whether it may run; only the first word counts."""
        if not self.said.done():
            self.said.set_result(yes)


async def approve(request: ApprovalRequest) -> bool | str:
    """Ask on the page before a program runs: `create_code_chain(…, approve=approve)`. Elsewhere the answer is no."""
    asked = ASKED.get(None)
    return await asked(request) if asked else "There is no page on which it could be approved."
