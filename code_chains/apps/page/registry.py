"""The sessions of the page: the open conversations of all clients."""

from __future__ import annotations

import asyncio
import secrets
import tempfile
import time
import weakref
from collections import deque
from collections.abc import Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path

from code_chains.apps.page.failures import report_error
from code_chains.apps.page.history import ConversationHistory
from code_chains.apps.page.sessions import PageSession
from code_chains.apps.program_queue import ProgramQueue
from code_chains.assembly.code_chain import CodeChain, share_conversations
from code_chains.errors import CodeChainsError, InputError
from code_chains.temporary import process_folder

_EXPIRED = "The previous conversation and its files have expired after a long time without activity. A new one begins here."
_MAX_SWEEP_INTERVAL_S = 60.0
_MAX_PER_CLIENT = 8
"""Conversations that a client may have open at once; one more closes a stored one, which opens again when it is used."""


class SessionRegistry:
    """The open sessions, one per conversation. An asynchronous context manager; leaving it closes them all.

    Args:
        chain: What answers all of them, or several by the names of their models, which then share the memory and the
            conversations of the first.
        concurrency: How many programs run at once.
        session_timeout: Seconds without an action after which a session is closed.
        folder: Where uploaded files are stored; None for a temporary folder.
        max_sessions: Maximum number of open sessions. One more replaces a session without questions and
            files, or is refused until one is closed.

    Attributes:
        queue: Has programs wait for their turn.
        class_key: The secret of whoever may see and stop what all clients run.
    """

    class_key: str
    queue: ProgramQueue

    def __init__(
        self,
        chain: CodeChain | Mapping[str, CodeChain],
        *,
        concurrency: int = 4,
        session_timeout: float = 7200.0,
        max_sessions: int = 200,
        folder: Path | None = None,
        is_owners: bool = False,
    ) -> None:
        self._is_owners, self.class_key = is_owners, secrets.token_urlsafe(24)
        self._chains = {"": chain} if isinstance(chain, CodeChain) else _share_conversations(chain)
        self._session_timeout, self._max_sessions = session_timeout, max_sessions
        self.queue = ProgramQueue(concurrency)
        self._numbers: dict[str, int] = {}
        self._sessions: list[PageSession] = []  # The one that was used last is the last.
        self._temporary = tempfile.TemporaryDirectory(prefix="page-", dir=process_folder())
        first = next(iter(self._chains.values()))
        self._history = ConversationHistory(first, (folder or Path(self._temporary.name)) / "files")
        self._resumed: weakref.WeakKeyDictionary[PageSession, asyncio.Task[None]] = (
            weakref.WeakKeyDictionary()
        )
        self._closing: set[asyncio.Task[None]] = set()
        self._expired: deque[str] = deque(maxlen=10 * max_sessions)

    async def __aenter__(self) -> SessionRegistry:
        self._sweeper = asyncio.create_task(self._sweep())
        if (executor := next(iter(self._chains.values())).executor) is not None:
            executor.warm_up()
        # Questions wait for models in threads, and those who read must not wait for them.
        asyncio.get_running_loop().set_default_executor(ThreadPoolExecutor(self._max_sessions + 16))
        return self

    async def __aexit__(self, *_: object) -> None:
        self._sweeper.cancel()
        with suppress(asyncio.CancelledError):
            await self._sweeper
        for session in list(self._sessions):
            self._close(session)
        await asyncio.gather(*self._closing)
        self._temporary.cleanup()

    def __len__(self) -> int:
        return len(self._sessions)

    def open(self, client_id: str, session_id: str | None = None) -> PageSession:
        """Return the session of a client for an action; open one if there is none.

        Args:
            client_id: The client.
            session_id: The conversation; None for the one that was used last.

        Raises:
            InputError: Too many sessions are open, or the conversation is not the client's.
        """
        session = self.get(client_id, session_id)
        if session is None:
            session = self.new(client_id, session_id)
        self._sessions.remove(session)
        self._sessions.append(session)
        session.last_active = time.monotonic()
        return session

    def new(self, client_id: str, session_id: str | None = None) -> PageSession:
        """Open another session of a client, without the turns that its conversation may have.

        Raises:
            InputError: Too many sessions are open, or the conversation is not the client's.
        """
        if session_id is not None:
            self._history.check_owner(client_id, session_id)
        self._check_capacity(client_id)
        before = self.get(client_id)
        session = PageSession(
            client_id,
            self._chains,
            self.queue,
            self._history,
            self.sessions,
            is_owners=self._is_owners,
            session_id=session_id,
        )
        if before is not None:
            session.model, session.is_dark = before.model, before.is_dark
        self._sessions.append(session)
        if client_id in self._expired:
            self._expired.remove(client_id)
            session.notice = _EXPIRED
        return session

    async def resume(self, client_id: str, session_id: str | None = None) -> PageSession:
        """Return the session of a client for an action, with the turns of its conversation.

        Args:
            client_id: The client.
            session_id: The conversation; None for the one that was used last, before this server was started, too.

        Raises:
            InputError: Too many sessions are open, or the conversation is not the client's.
        """
        session = self.open(client_id, session_id)
        if session not in self._resumed:  # Another action of the client waits for the same task.
            self._resumed[session] = asyncio.create_task(self._load(client_id, session, session_id))
        try:
            await asyncio.shield(self._resumed[session])
        except CodeChainsError as error:
            report_error(error)
        return self.open(client_id, session.session_id)

    async def _load(self, client_id: str, session: PageSession, session_id: str | None) -> None:
        if session_id is None:
            stored = await asyncio.to_thread(self._history.conversations, client_id)
            session_id = stored[0].session_id if stored else None
        if session_id is not None and session.is_blank:
            notice = session.notice
            await session.switch(session_id)
            session.notice = "" if session.entries else notice

    @property
    def models(self) -> list[str]:
        """The names of the models that visitors may select."""
        return list(self._chains)

    async def forget(self, client_id: str) -> str:
        """Stop what a client runs, and delete its conversations and files; return nothing to say."""
        for session in self.sessions(client_id):
            await session.reset()
            self._close(session)
        for stored in await asyncio.to_thread(self._history.conversations, client_id):
            await asyncio.to_thread(self._history.delete, client_id, stored.session_id)
        return ""

    def number(self, client_id: str) -> int:
        """Return the number of a client, in the order in which they came."""
        return self._numbers.setdefault(client_id, len(self._numbers) + 1)

    def sessions(self, client_id: str | None = None) -> list[PageSession]:
        """Return the open sessions, of a client or of all of them; the one that was used last is the last."""
        return [session for session in self._sessions if client_id in (None, session.client_id)]

    def get(self, client_id: str, session_id: str | None = None) -> PageSession | None:
        """Return the session of a client, if it is open. This does not count as an action.

        Args:
            client_id: The client.
            session_id: The conversation; None for the one that was used last.
        """
        own = self.sessions(client_id)[::-1]
        return next((session for session in own if session_id in (None, session.session_id)), None)

    def _check_capacity(self, client_id: str) -> None:
        """Close a session that loses nothing if there are too many."""
        self.close_idle()
        own = self.sessions(client_id)
        idle = [session for session in own if not session.is_busy and (session.is_stored or session.is_blank)]
        if len(own) >= _MAX_PER_CLIENT and idle:
            self._close(idle[0])
        if len(self._sessions) < self._max_sessions:
            return
        blank = next((session for session in self._sessions if session.is_blank), None)
        if blank is None:
            raise InputError("Too many people use this page at the moment. Try again later.")
        self._close(blank)

    def close_idle(self) -> None:
        """Close the sessions whose timeout has passed."""
        before = time.monotonic() - self._session_timeout
        for session in list(self._sessions):
            # Invariant: the folder of a session is not removed while a file is written there.
            if session.last_active < before and not (session.is_busy or session.is_uploading):
                self._close(session)

    def _close(self, session: PageSession) -> None:
        self._sessions.remove(session)
        if session.notice or not (session.is_stored or session.is_blank):
            self._expired.append(session.client_id)
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
