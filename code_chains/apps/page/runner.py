"""The work on an entry: a question that the chain answers, or a program of the user."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import aclosing
from functools import partial
from pathlib import Path
from typing import Any, cast

from code_chains.apps.page.approval import APPROVER, TIMEOUT_S, Approval, PageApprover
from code_chains.apps.page.entries import ChatEntry
from code_chains.apps.safe_html import MAX_CHARS
from code_chains.assembly.code_chain import CodeChain
from code_chains.chains.validate import ApprovalRequest
from code_chains.executors.waiting import TURNS, Operation


class EntryRunner:
    """Works on an entry.

    Args:
        entry: The entry, which follows the work.
        chain: What answers.
        session_id: The conversation.
        in_turn: Has a run of a program wait for its turn; called with the run and what follows its place in the queue.
        on_change: Called whenever the entry has changed.
        approved: What was approved for all programs of the conversation; kept by the caller.
    """

    def __init__(
        self,
        entry: ChatEntry,
        chain: CodeChain,
        session_id: str,
        in_turn: Callable[..., Operation[Any]],
        on_change: Callable[[], None],
        approved: set[PageApprover],
    ) -> None:
        self._in_turn = partial(in_turn, on_position=self._set_queue_position)
        self._entry, self._chain, self._session_id, self._on_change = entry, chain, session_id, on_change
        self._approved = approved
        self._task: asyncio.Task[Any] | None = None
        self._approval_lock = asyncio.Lock()

    async def run(self, files: Mapping[str, Path]) -> None:
        """Answer the question, or run the program of the user."""
        self._task = asyncio.current_task()
        TURNS.set(self._in_turn)
        await (self._execute(files) if self._entry.is_user_code else self._answer(files))

    async def _answer(self, files: Mapping[str, Path]) -> None:
        APPROVER.set(partial(self._request_approval))
        state = {"query": self._entry.query, "session_id": self._session_id, "files": files}
        events = cast("AsyncIterator[Any]", self._chain.astream_events(state, version="v2"))
        async with aclosing(cast("Any", events)):
            async for event in events:
                self._entry.handle_event(event)
                self._on_change()

    async def _execute(self, files: Mapping[str, Path]) -> None:
        entry = self._entry
        entry.progress.stage = "execute"
        state = {"code": entry.outcome.code, "query": entry.query, "files": files}
        chunks = self._chain.user_code_chain().astream(state | {"session_id": self._session_id})
        async with aclosing(cast("Any", chunks)):
            async for chunk in chunks:
                entry.progress.add(chunk)
                entry.outcome.add(chunk)
                self._on_change()

    def _set_queue_position(self, position: int) -> None:
        if position != self._entry.progress.queue_position:
            self._entry.progress.queue_position = position
            self._on_change()

    async def _request_approval(self, request: ApprovalRequest, approver: PageApprover) -> bool | str:
        async with self._approval_lock:  # Samples may request approval concurrently.
            if approver in self._approved:
                return True
            if len(request.code) > MAX_CHARS:
                return "It is too long to be read before it runs. Write a shorter program."
            is_approved = await self._decision(Approval(request, approver, asyncio.Future()))
            if is_approved is True and approver.is_once:
                self._approved.add(approver)
            return is_approved

    async def _decision(self, approval: Approval) -> bool | str:
        entry = self._entry
        entry.progress.approval = approval
        self._on_change()
        try:
            return await asyncio.wait_for(approval.decision, TIMEOUT_S)
        except TimeoutError:  # An absent user gets no further requests.
            entry.outcome.error = "The program was not approved in time and did not run. Ask again."
            if self._task is not None:
                self._task.cancel()
            return entry.outcome.error
        finally:
            entry.progress.approval = None
            self._on_change()
