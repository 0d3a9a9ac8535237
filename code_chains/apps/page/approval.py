"""Programs that wait for approval on the page before they run."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextvars import ContextVar
from dataclasses import dataclass

from code_chains.chains.validate import ApprovalRequest

TIMEOUT_S = 300.0
"""Seconds without a decision after which a program counts as refused."""
APPROVER: ContextVar[Callable[[ApprovalRequest, PageApprover], Awaitable[bool | str]]] = ContextVar(
    "code_chains_page_approver"
)
"""Handles approval requests in a task, and in the tasks that it starts."""


@dataclass(frozen=True, eq=False)
class Approval:
    """A program shown on the page, and the decision on it."""

    request: ApprovalRequest
    approver: PageApprover
    decision: asyncio.Future[bool]

    def decide(self, is_approved: bool) -> None:
        """Approve or refuse the program; only the first decision counts."""
        if not self.decision.done():
            self.decision.set_result(is_approved)


@dataclass(frozen=True)
class PageApprover:
    """Asks on the page before a program runs, and refuses it elsewhere.

    Attributes:
        addresses: What programs may connect to, which the page says.
        is_once: Whether one approval is for all programs of its conversation.
    """

    addresses: tuple[str, ...] = ()
    is_once: bool = False

    async def __call__(self, request: ApprovalRequest) -> bool | str:
        """Return whether a program may run, or why not."""
        approver = APPROVER.get(None)
        if approver is None:
            return "There is no page on which it could be approved."
        return await approver(request, self)


approve: PageApprover = PageApprover()
"""Ask on the page before each program runs: `create_code_chain(…, approve=approve)`."""
