"""The sessions of the page, by client."""

from __future__ import annotations

import asyncio
import tempfile
import time
from collections import OrderedDict, deque
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path

from code_chains.apps.page.failures import report_error
from code_chains.apps.page.history import ConversationHistory
from code_chains.apps.page.queue import RequestQueue
from code_chains.apps.page.sessions import PageSession
from code_chains.code_chain import CodeChain, share_conversations
from code_chains.errors import CodeChainsError, InputError
from code_chains.temporary import process_folder

_EXPIRED = "The previous conversation and its files have expired after a long time without activity. A new one begins here."
_MAX_SWEEP_INTERVAL_S = 60.0


class SessionRegistry:
    """The open sessions, one per client. An asynchronous context manager; leaving it closes them all.

    Args:
        chain: What answers all of them, or several by the names of their models, which then share the memory and the
            conversations of the first.
        concurrency: How many questions run at once.
        session_timeout: Seconds without an action after which a session is closed.
        folder: Where uploaded files are stored; None for a temporary folder.
        max_sessions: Maximum number of open sessions. One more replaces a session without questions and
            files, or is refused until one is closed.
    """

    def __init__(
        self,
        chain: CodeChain | Mapping[str, CodeChain],
        *,
        concurrency: int = 2,
        session_timeout: float = 7200.0,
        max_sessions: int = 200,
        folder: Path | None = None,
        is_owners: bool = False,
    ) -> None:
        self._is_owners = is_owners
        self._chains = {"": chain} if isinstance(chain, CodeChain) else _share_conversations(chain)
        self._session_timeout, self._max_sessions = session_timeout, max_sessions
        # A session has at most one question, so the queue is never full.
        self._queue = RequestQueue(concurrency, max_queued=max_sessions)
        self._sessions: OrderedDict[str, PageSession] = OrderedDict()
        self._temporary = tempfile.TemporaryDirectory(prefix="page-", dir=process_folder())
        first = next(iter(self._chains.values()))
        self._history = ConversationHistory(first, (folder or Path(self._temporary.name)) / "files")
        self._resumed: dict[str, asyncio.Task[None]] = {}
        self._closing: set[asyncio.Task[None]] = set()
        self._expired: deque[str] = deque(maxlen=10 * max_sessions)

    async def __aenter__(self) -> SessionRegistry:
        self._sweeper = asyncio.create_task(self._sweep())
        return self

    async def __aexit__(self, *_: object) -> None:
        self._sweeper.cancel()
        with suppress(asyncio.CancelledError):
            await self._sweeper
        for client_id in list(self._sessions):
            self._close(client_id)
        await asyncio.gather(*self._closing)
        self._temporary.cleanup()

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, client_id: str) -> PageSession:
        """Return the session of a client for an action; open one if there is none.

        Raises:
            InputError: Too many sessions are open.
        """
        if client_id not in self._sessions:
            self._check_capacity()
            self._sessions[client_id] = self._new(client_id)
        self._sessions.move_to_end(client_id)
        session = self._sessions[client_id]
        session.last_active = time.monotonic()
        return session

    def _new(self, client_id: str) -> PageSession:
        session = PageSession(
            client_id,
            self._chains,
            self._queue,
            self._history,
            self._sessions.values,
            is_owners=self._is_owners,
        )
        if client_id in self._expired:
            self._expired.remove(client_id)
            session.notice = _EXPIRED
        return session

    async def resume(self, client_id: str) -> PageSession:
        """Return the session of a client for an action; a new one resumes the client's latest conversation.

        Raises:
            InputError: Too many sessions are open.
        """
        if client_id not in self._resumed or client_id not in self._sessions:
            # Another action of the client waits for the same task.
            session = self.open(client_id)
            self._resumed[client_id] = asyncio.create_task(self._open_latest(client_id, session))
        try:
            await asyncio.shield(self._resumed[client_id])
        except CodeChainsError as error:
            report_error(error)
        return self.open(client_id)

    async def _open_latest(self, client_id: str, session: PageSession) -> None:
        stored = await asyncio.to_thread(self._history.conversations, client_id)
        if stored and session.is_blank:
            await session.switch(stored[0].session_id)

    @property
    def models(self) -> list[str]:
        """The names of the models that visitors may select."""
        return list(self._chains)

    def get(self, client_id: str) -> PageSession | None:
        """Return the session of a client, if there is one. This does not count as an action."""
        return self._sessions.get(client_id)

    def _check_capacity(self) -> None:
        """Close a blank session if there are too many."""
        self.close_idle()
        if len(self._sessions) < self._max_sessions:
            return
        blank = next((client_id for client_id, session in self._sessions.items() if session.is_blank), None)
        if blank is None:
            raise InputError("Too many people use this page at the moment. Try again later.")
        self._close(blank)

    def close_idle(self) -> None:
        """Close the sessions whose timeout has passed."""
        before = time.monotonic() - self._session_timeout
        for client_id, session in list(self._sessions.items()):
            # Invariant: the folder of a session is not removed while a file is written there.
            if session.last_active < before and not (session.is_busy or session.is_uploading):
                self._close(client_id)

    def _close(self, client_id: str) -> None:
        session = self._sessions.pop(client_id)
        self._resumed.pop(client_id, None)
        if session.notice or not (session.is_stored or session.is_blank):
            self._expired.append(client_id)
        task = asyncio.create_task(_close(session))
        self._closing.add(task)
        task.add_done_callback(self._closing.discard)

    async def _sweep(self) -> None:
        while True:
            await asyncio.sleep(min(_MAX_SWEEP_INTERVAL_S, self._session_timeout / 2))
            self.close_idle()


async def _close(session: PageSession) -> None:
    with suppress(CodeChainsError):
        await session.close(_EXPIRED)


def _share_conversations(chains: Mapping[str, CodeChain]) -> dict[str, CodeChain]:
    first, *others = chains.values()
    for chain in others:
        share_conversations(first, chain)
    return dict(chains)
