"""The clients of a Model Context Protocol server, and what belongs to each of them.

| transport | a client is |
|---|---|
| standard input and output | the one that started the server |
| HTTP, with a handshake (up to revision 2025-11-25) | a session of the protocol, until it is deleted or idle for too long |
| HTTP, without (from revision 2026-07-28) | a token: requests have nothing else in common |
"""

from __future__ import annotations

import asyncio
import hashlib
import time
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from functools import partial
from typing import Any, TypeVar

from code_chains.apps.mcp.files import MAX_INPUT_BYTES
from code_chains.apps.program_queue import ProgramQueue
from code_chains.errors import InputError, needs
from code_chains.executors.waiting import TURNS
from code_chains.inputs import check_session_id
from code_chains.storage.foreign import count_json

with needs("mcp", "command", "mcp"):
    from mcp.server.auth.middleware.bearer_auth import AuthenticatedUser
    from mcp.server.context import CallNext, HandlerResult, ServerRequestContext
    from mcp.types.version import HANDSHAKE_PROTOCOL_VERSIONS
    from starlette.datastructures import Headers
    from starlette.requests import Request
    from starlette.responses import PlainTextResponse
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

IDLE_TIMEOUT_S = 1800.0
"""Seconds without a request after which a session of the protocol ends."""
MAX_BODY_BYTES = 2 * MAX_INPUT_BYTES
"""Files may be escaped or encoded, which makes them larger."""
MAX_BODY_ITEMS = 20_000
"""Values of a request: the library of the protocol takes 0.2 s of the loop for so many."""
MAX_RUNNING = 4
"""Programs that run at once; those of all clients take turns."""
MAX_SESSIONS = 100
"""Sessions of the protocol at one time, of all tokens together."""
_NO_SHARE = (
    "This token has its share of sessions. End one with DELETE, or wait until one was idle for half an hour."
)
_SESSION_HEADER = "mcp-session-id"
_SESSION = "session "
_CONNECTION = "code_chains.connection"
_T = TypeVar("_T")


@dataclass(eq=False)
class Client:
    """A client.

    Attributes:
        id: Identifies it; empty for the one on standard input and output.
        sessions: Names of its sessions, as the chain knows them.
        requests: How many of its requests are in progress.
        last_active: When one last ended, on the monotonic clock.
        is_deleted: Whether its session of the protocol was deleted.
        owner: Whose session of the protocol it is: a digest of the token.
    """

    id: str = ""
    sessions: set[str] = field(default_factory=set)
    requests: int = 0
    last_active: float = field(default_factory=time.monotonic)
    is_deleted: bool = False
    owner: str = ""

    @property
    def is_gone(self) -> bool:
        """Whether its session of the protocol has ended."""
        is_idle = self.requests == 0 and self.last_active < time.monotonic() - IDLE_TIMEOUT_S
        return self.is_deleted or (is_idle and self.id.startswith(_SESSION))

    def session_name(self, session_id: str | None) -> str | None:
        """Return the name by which the chain knows a session: clients share none, whatever they call theirs.

        Raises:
            InputError: `session_id` is not a valid name.
        """
        if session_id is None:
            return None
        name = check_session_id(session_id)
        if self.id:
            digest = hashlib.sha256(f"{self.id}\0{name}".encode()).hexdigest()
            name = f"{name[:100]} ({digest[:32]})"
        self.sessions.add(name)
        return name


@dataclass(eq=False)
class _Connection:
    """A request over HTTP: whether its client is gone, the status of the response, and whether there is more of it."""

    is_over: asyncio.Event = field(default_factory=asyncio.Event)
    status: int = 0
    has_more: bool = False


class ClientRegistry:
    """Tells who makes a request. It is a middleware of the server, and `current` belongs to the running request.

    Args:
        release: Discards what belongs to a client that is gone.
        share: How many sessions of the protocol each token may have at one time.
    """

    def __init__(self, release: Callable[[Client], None], *, share: int = MAX_SESSIONS) -> None:
        self._release, self._clients, self._share = release, {"": Client()}, share
        self._connections: set[_Connection] = set()
        # One client may have programs in parallel, and one slot is always left for the others.
        self._queue = ProgramQueue(MAX_RUNNING, max_each=MAX_RUNNING - 1)
        self._current: ContextVar[Client] = ContextVar("client", default=self._clients[""])

    @property
    def current(self) -> Client:
        """The client that makes the request."""
        return self._current.get()

    def take_turns(self) -> None:
        """Have the programs of this request wait for the turn of its client."""
        TURNS.set(partial(self._queue.limit, learner=self.current.id, on_position=lambda position: None))

    async def __call__(self, ctx: ServerRequestContext[Any, Any], call_next: CallNext) -> HandlerResult:
        """Pass on a message of a client."""
        client_id = _identify(ctx.request, ctx.protocol_version)
        client = self._clients.setdefault(client_id, Client(client_id))
        reset = self._current.set(client)
        try:
            return await call_next(ctx)
        finally:
            self._current.reset(reset)

    @asynccontextmanager
    async def connection(self, request: Request) -> AsyncIterator[_Connection]:
        """Count a request over HTTP as long as it takes; then release the clients that are gone."""
        connection, client_id = _Connection(), _session_client(request.headers.get(_SESSION_HEADER, ""))
        self._connections.add(connection)
        if client := self._clients.get(client_id):
            client.requests += 1
        try:
            yield connection
        finally:
            self._connections.discard(connection)
            if client := self._clients.get(client_id):
                client.requests, client.last_active = max(0, client.requests - 1), time.monotonic()
                client.is_deleted = request.method == "DELETE" and connection.status == 200
            await self.release_gone()

    def has_share(self, owner: str) -> bool:
        """Return whether a token may have another session of the protocol."""
        return sum(client.owner == owner for client in self._clients.values()) < self._share

    def add_session(self, session: str, owner: str) -> None:
        """Count a new session of the protocol as one of its token's."""
        client_id = _session_client(session)
        self._clients.setdefault(client_id, Client(client_id)).owner = owner

    def disconnect_all(self) -> None:
        """Cancel all calls over HTTP, as the server ends."""
        for connection in self._connections:
            connection.is_over.set()

    async def release_gone(self) -> None:
        """Release the clients whose session of the protocol was deleted, or idle for too long."""
        for client in [client for client in self._clients.values() if client.is_gone]:
            self._clients.pop(client.id, None)
            await asyncio.to_thread(self._release, client)


class Body:
    """What a client sends, which is counted before the application parses it, once that knows the client and asks for it.

    Args:
        receive: Receives messages of ASGI.
    """

    def __init__(self, receive: Receive) -> None:
        self._receive, self._is_read = receive, False

    async def receive(self) -> Message:
        """Return the body in one message, or what is none of JSON for a body of too many items; then what follows."""
        if self._is_read:
            return await self._receive()
        self._is_read, data = True, bytearray()
        while len(data) <= MAX_BODY_BYTES:  # The application refuses what is larger.
            message = await self._receive()
            if message["type"] != "http.request":
                return message
            data += message.get("body", b"")
            if not message.get("more_body", False):
                break
        try:
            if b"\0" in data:  # Of UTF-16, which a parser would take, and which counts as something else.
                raise ValueError("it is not in UTF-8")
            await asyncio.to_thread(count_json, data, MAX_BODY_ITEMS)
        except ValueError as error:
            data = bytearray(f"The request is refused: {error}.".encode())
        return {"type": "http.request", "body": bytes(data), "more_body": False}


class ConnectionWatch:
    """ASGI middleware: it notices when a client disconnects, and when a session of the protocol ends.

    Args:
        app: The application.
        clients: The clients of the server.
    """

    app: ASGIApp

    def __init__(self, app: ASGIApp, clients: ClientRegistry) -> None:
        self.app, self._clients = app, clients

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass on a request."""
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        request = Request(scope)
        is_new = request.method == "POST" and _SESSION_HEADER not in request.headers
        # Of the token alone: `Bearer` before it may be written in any way.
        token = request.headers.get("authorization", "").partition(" ")[2].strip()
        owner = hashlib.sha256(token.encode()).hexdigest()
        if is_new and not self._clients.has_share(owner):
            await PlainTextResponse(_NO_SHARE, 429)(scope, receive, send)
            return
        body = Body(receive)
        async with self._clients.connection(request) as connection:

            async def watched_receive() -> Message:
                message = await body.receive()
                if message["type"] == "http.disconnect":
                    connection.is_over.set()
                return message

            async def watched_send(message: Message) -> None:
                connection.status = message.get("status", connection.status)
                session = Headers(raw=message.get("headers", ())).get(_SESSION_HEADER)
                if is_new and session:
                    self._clients.add_session(session, owner)
                connection.has_more = message.get("more_body", message["type"] == "http.response.start")
                await send(message)

            await self.app({**scope, _CONNECTION: connection}, watched_receive, watched_send)
            if connection.has_more:  # A stream of notifications, as the server ends.
                await send({"type": "http.response.body", "body": b""})


async def run_while_connected(request: Request | None, work: Coroutine[Any, Any, _T]) -> _T:
    """Await work, and cancel it if the client disconnects, as nobody could receive the result, or if the server ends.

    Args:
        request: The request that the work is for; None on standard input and output.
        work: The work.

    Raises:
        InputError: The work was cancelled.
    """
    connection = None if request is None else request.scope.get(_CONNECTION)
    if connection is None:
        return await work
    task, gone = asyncio.create_task(work), asyncio.create_task(connection.is_over.wait())
    try:
        await asyncio.wait((task, gone), return_when=asyncio.FIRST_COMPLETED)
        if not task.done():
            raise InputError("The call was cancelled: the client disconnected, or the server ends.")
        return task.result()
    finally:
        task.cancel()
        gone.cancel()
        await asyncio.gather(task, gone, return_exceptions=True)


def _identify(request: Any, protocol_version: str) -> str:
    """Return the id of the client that makes a request.

    A session of the protocol was checked by the transport: it exists, and belongs to the token.
    """
    if not isinstance(request, Request):
        return ""
    session = request.headers.get(_SESSION_HEADER, "")
    if session and protocol_version in HANDSHAKE_PROTOCOL_VERSIONS:
        return _session_client(session)
    user = request.scope.get("user")
    return f"token {user.access_token.client_id}" if isinstance(user, AuthenticatedUser) else "token"


def _session_client(session: str) -> str:
    return _SESSION + session
