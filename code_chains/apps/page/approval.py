"""Programs that wait for approval on the page before they run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass

from code_chains.chains.validate import ApprovalRequest

TIMEOUT_S = 300.0
"""Seconds without a decision after which a program counts as refused."""
APPROVER: ContextVar[Callable[[ApprovalRequest], Awaitable[bool | str]]] = ContextVar(
    "code_chains_page_approver"
)
"""Handles approval requests in a task, and in the tasks that it starts."""


@dataclass(frozen=True, eq=False)
class Approval:
    """A program shown on the page, and the decision on it."""

    request: ApprovalRequest
    decision: asyncio.Future[bool]

    def decide(self, is_approved: bool) -> None:
        """Approve or refuse the program; only the first decision counts."""
        if not self.decision.done():
            self.decision.set_result(is_approved)


async def approve(request: ApprovalRequest) -> bool | str:
    """Ask on the page before a program runs: `create_code_chain(…, approve=approve)`. Refuse it elsewhere."""
    approver = APPROVER.get(None)
    return await approver(request) if approver else "There is no page on which it could be approved."
