"""The server of the page and of the artifacts of its programs."""

from __future__ import annotations

import hmac
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from urllib.parse import quote

from code_chains.apps.page.address import Address
from code_chains.apps.page.failures import report_error
from code_chains.apps.page.registry import SessionRegistry
from code_chains.apps.page.tables import for_spreadsheets
from code_chains.assembly.code_chain import CodeChain
from code_chains.errors import CodeChainsError, InputError, needs
from code_chains.records.filenames import safe_name
from code_chains.state import Artifact

with needs("ui", "command", "serve"):
    from fastapi import FastAPI, HTTPException, Request, Response
    from fastapi.responses import HTMLResponse, PlainTextResponse
    from nicegui import ui

    from code_chains.apps.page.app import STYLE, Page
    from code_chains.apps.page.class_view import ClassView
    from code_chains.apps.page.guard import new_client_id
    from code_chains.apps.page.hosting import CONNECT_TIMEOUT_S, begin_page, host_app, with_pages
    from code_chains.apps.page.outcome_view import IMAGES, is_interactive
    from code_chains.apps.page.sessions import PageSession

_ARTIFACT_STYLE = b"""<!doctype html><meta charset="utf-8"><style>
body { margin: 2px 0; font: 14px/18px system-ui, sans-serif; color: #1c1917 }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; border: 0 }
th, td { padding: 6px 14px; border: 0; border-bottom: 1px solid rgb(28 25 23 / 14%); text-align: right }
thead th { border-bottom: 1px solid rgb(28 25 23 / 40%); font-weight: 600 }
</style>"""
_SANDBOXED = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"
_INTERACTIVE = (
    "sandbox allow-scripts; default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval' blob:; worker-src blob:;"
    " style-src 'unsafe-inline'; img-src data: blob:; font-src data:; form-action 'none'; base-uri 'none';"
    " webrtc 'block'; frame-ancestors 'self'"
)
"""The policy of a chart in a frame: its scripts have an origin of their own and no network."""


def create_app(sessions: SessionRegistry) -> FastAPI:
    """Create the application that serves the page; wrap it in a `Guard`.

    Args:
        sessions: The sessions, opened and closed with the application.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with sessions:
            yield

    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)

    @app.get("/artifacts/{entry_id}/{index}")
    async def artifact(request: Request, entry_id: str, index: int) -> Response:
        return _artifact_response(_find_artifact(sessions, request, entry_id, index), request)

    @app.get("/tables/{entry_id}/{index}")
    def table(request: Request, entry_id: str, index: int) -> Response:
        return _table_response(_find_artifact(sessions, request, entry_id, index))

    @app.post("/upload")
    async def upload(request: Request, name: str, c: str | None = None) -> Response:
        return await _respond(_store_file(sessions, request, name, c))

    @app.post("/forget")
    async def forget(request: Request) -> Response:
        response = await _respond(sessions.forget(request.state.client_id))
        if response.status_code == 200:
            request.state.client_id = new_client_id()
        return response

    @ui.page("/", title="code_chains", language="en-US", response_timeout=CONNECT_TIMEOUT_S * 6)
    async def page(request: Request, c: str | None = None) -> Response | None:
        return await _open_page(sessions, request, c)

    _add_class_view(sessions)
    return with_pages(app)


def _add_class_view(sessions: SessionRegistry) -> None:
    @ui.page("/class", title="Class · code_chains", language="en-US")
    def class_view(k: str = "") -> Response | None:
        if not hmac.compare_digest(k.encode(), sessions.class_key.encode()):
            return PlainTextResponse("Open the address of the class that `code-chains serve` printed.", 401)
        ui.add_css(STYLE)
        ClassView(sessions)
        return None


async def _open_page(sessions: SessionRegistry, request: Request, session_id: str | None) -> Response | None:
    begin_page(request)
    try:
        Page(sessions, await _resume(sessions, request.state.client_id, session_id))
    except InputError as error:
        return PlainTextResponse(str(error), 503)
    return None


async def _store_file(sessions: SessionRegistry, request: Request, name: str, session_id: str | None) -> str:
    session = await sessions.resume(request.state.client_id, session_id)
    return await session.add_file(name, await request.body())


async def _respond(action: Awaitable[str]) -> Response:
    """Return what an action returns, or why it is refused."""
    try:
        return PlainTextResponse(await action)
    except CodeChainsError as error:
        return PlainTextResponse(report_error(error), 400)


async def _resume(sessions: SessionRegistry, client_id: str, session_id: str | None) -> PageSession:
    """Return the session that an address names; the latest one for the address of another client, or of nothing."""
    try:
        return await sessions.resume(client_id, session_id)
    except InputError as error:
        session = await sessions.resume(client_id)
        session.notice = str(error)
        return session


def _find_artifact(sessions: SessionRegistry, request: Request, entry_id: str, index: int) -> Artifact:
    found = (session.artifact(entry_id, index) for session in sessions.sessions(request.state.client_id))
    artifact = next(filter(None, found), None)
    if artifact is None:
        raise HTTPException(404, "There is no such artifact.")
    return artifact


def _table_response(artifact: Artifact) -> Response:
    return _download(for_spreadsheets(artifact.data), artifact.name)


def _artifact_response(artifact: Artifact, request: Request) -> Response:
    """Return an artifact so that scripts run only in a frame of the page, and none if its URL is opened directly.

    Invariant: the page allows its frames no address but its own, so that no script can leave by navigating.
    """
    is_framed = request.headers.get("sec-fetch-dest") == "iframe"
    headers = {
        "content-security-policy": _INTERACTIVE if is_framed and is_interactive(artifact) else _SANDBOXED,
        "cache-control": "private, max-age=3600",
        "vary": "sec-fetch-dest",
    }
    if artifact.media_type == "text/html":
        return HTMLResponse(_ARTIFACT_STYLE + artifact.data, headers=headers)
    if artifact.media_type in IMAGES:
        return Response(artifact.data, media_type=artifact.media_type, headers=headers)
    return _download(artifact.data, artifact.name)


def _download(data: bytes, name: str) -> Response:
    ascii_name = safe_name(name).encode("ascii", "replace").decode().replace("?", "_")
    full_name = quote(name.replace("/", "-"), safe="")
    headers = {
        "content-security-policy": _SANDBOXED,
        "cache-control": "private, max-age=3600",
        "content-disposition": f"attachment; filename=\"{ascii_name}\"; filename*=UTF-8''{full_name}",
    }
    return Response(data, media_type="application/octet-stream", headers=headers)


def serve(
    chain: CodeChain | Mapping[str, CodeChain],
    address: Address | None = None,
    *,
    concurrency: int = 4,
    open_browser: bool = True,
    folder: Path | None = None,
) -> None:
    """Serve the page until interrupted.

    Args:
        chain: What answers, or several chains by the names of their models, of which each visitor selects one. These use
            the memory and the conversations of the first. With a memory in a file conversations survive a restart.
        address: Where it is served; None for port 8080 of this machine.
        concurrency: How many programs run at once.
        open_browser: Whether to open the page in a browser.
        folder: Where uploaded files are stored with a memory in a file; None for a temporary folder.

    Raises:
        ConfigurationError: The address is not available.
    """
    address = address or Address()
    registry = SessionRegistry(chain, concurrency=concurrency, folder=folder, is_owners=address.is_local)
    first = chain if isinstance(chain, CodeChain) else next(iter(chain.values()))
    host_app(
        create_app(registry),
        address,
        class_key=registry.class_key,
        open_browser=open_browser,
        folder=folder,
        chain=first,
    )
