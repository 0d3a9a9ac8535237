"""The server of the page and of the artifacts of its programs."""

from __future__ import annotations

import asyncio
import hmac
import json
import secrets
import webbrowser
from collections.abc import AsyncIterator, Awaitable, Mapping, Sequence
from contextlib import asynccontextmanager, nullcontext
from pathlib import Path
from urllib.parse import quote, urlencode

import click

from code_chains.apps.page.failures import report_error
from code_chains.apps.page.lessons import LessonShelf
from code_chains.apps.page.registry import SessionRegistry
from code_chains.apps.page.tables import for_spreadsheets
from code_chains.assembly.code_chain import CodeChain
from code_chains.errors import CodeChainsError, InputError, needs
from code_chains.records.filenames import safe_name
from code_chains.state import Artifact

with needs("ui", "command", "serve"):
    import uvicorn
    from fastapi import FastAPI, HTTPException, Request, Response
    from fastapi.responses import HTMLResponse, PlainTextResponse
    from nicegui import Client, ui

    from code_chains.apps.http_server import GracefulServer, is_loopback, listen, url_name
    from code_chains.apps.page.app import STYLE, Page
    from code_chains.apps.page.class_view import ClassView
    from code_chains.apps.page.guard import TOKEN, Guard, new_client_id, redirect_file, secret_path
    from code_chains.apps.page.lesson_page import LessonPage, show_lessons
    from code_chains.apps.page.outcome_view import IMAGES, is_interactive
    from code_chains.apps.page.sessions import PageSession

_MAX_PAGES, _CONNECT_TIMEOUT_S = 64, 5.0
"""Beyond this number of pages, those are deleted to which no browser has connected within the timeout."""
_RECONNECT_TIMEOUT_S = 10.0
_ARTIFACT_STYLE = b"""<!doctype html><meta charset="utf-8"><style>
body { margin: 2px 0; font: 14px/18px system-ui, sans-serif; color: #1c1917 }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; border: 0 }
th, td { padding: 6px 14px; border: 0; border-bottom: 1px solid rgb(28 25 23 / 14%); text-align: right }
thead th { border-bottom: 1px solid rgb(28 25 23 / 40%); font-weight: 600 }
</style>"""
_NO_SCRIPT = "This page needs JavaScript, which this browser does not run."
_CHECK_ADDRESS = """addEventListener("DOMContentLoaded", () => {
    const [host, allowed] = %s;
    if (host === location.host || allowed.includes(location.hostname)) return;
    document.body.textContent = `The proxy at ${location.host} passes the Host “${host}” to code_chains, so that this page `
        + `cannot work. Have it pass its own, or start code-chains serve with --allowed-host ${location.hostname}.`;
});"""
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

    @ui.page("/", title="code_chains", language="en-US", response_timeout=_CONNECT_TIMEOUT_S * 6)
    async def page(request: Request, c: str | None = None) -> Response | None:
        return await _open_page(sessions, request, c)

    _add_class_view(sessions)
    if sessions.lessons is not None:
        _add_lessons(sessions, sessions.lessons)
    ui.run_with(app, tailwind=False, show_welcome_message=False, reconnect_timeout=_RECONNECT_TIMEOUT_S)
    return app


def _add_class_view(sessions: SessionRegistry) -> None:
    @ui.page("/class", title="Class · code_chains", language="en-US")
    def class_view(k: str = "") -> Response | None:
        if not hmac.compare_digest(k.encode(), sessions.class_key.encode()):
            return PlainTextResponse("Open the address of the class that `code-chains serve` printed.", 401)
        ui.add_css(STYLE)
        ClassView(sessions)
        return None


def _add_lessons(sessions: SessionRegistry, shelf: LessonShelf) -> None:
    @ui.page("/lessons", title="Lessons · code_chains", language="en-US")
    async def all_lessons(request: Request) -> None:
        show_lessons(shelf, await asyncio.to_thread(shelf.lessons), request.state.client_id)

    @ui.page("/lessons/{name}", title="Lesson · code_chains", language="en-US")
    async def lesson(request: Request, name: str) -> Response | None:
        await asyncio.to_thread(shelf.lessons)
        try:
            desk = shelf.desk(request.state.client_id, name, sessions.queue)
        except InputError as error:
            return PlainTextResponse(str(error), 404)
        ui.page_title(desk.work.lesson.title)
        LessonPage(shelf, desk)
        return None


async def _open_page(sessions: SessionRegistry, request: Request, session_id: str | None) -> Response | None:
    if len(Client.instances) > _MAX_PAGES:
        Client.prune_instances(client_age_threshold=_CONNECT_TIMEOUT_S)
    ui.add_head_html(_check_of_address(request))
    try:
        Page(sessions, await _resume(sessions, request.state.client_id, session_id))
    except InputError as error:
        return PlainTextResponse(str(error), 503)
    return None


def _check_of_address(request: Request) -> str:
    """Return what says so in the browser if the page cannot work at its address, or without scripts."""
    hosts = json.dumps([request.headers.get("host", ""), sorted(request.state.allowed_hosts)])
    script = _CHECK_ADDRESS % hosts.replace("<", "\\u003c")
    return f"<script>{script}</script><noscript>{_NO_SCRIPT}</noscript>"


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
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    token: bool = False,
    allowed_hosts: Sequence[str] = (),
    concurrency: int = 4,
    open_browser: bool = True,
    folder: Path | None = None,
    lessons: LessonShelf | None = None,
) -> None:
    """Serve the page until interrupted.

    Args:
        chain: What answers, or several chains by the names of their models, of which each visitor selects one. These use
            the memory and the conversations of the first. With a memory in a file conversations survive a restart.
        host: The address to listen on.
        port: The port; 0 selects a free one.
        token: Whether to require a token, which is part of the printed address. It locks out other users of
            this machine; beyond loopback addresses, and with `allowed_hosts`, it is always required.
        allowed_hosts: Names in addresses of proxies that stand in front of the page.
        concurrency: How many programs run at once.
        open_browser: Whether to open the page in a browser.
        folder: Where uploaded files are stored with a memory in a file; None for a temporary folder.
        lessons: Lessons at which the visitors work as well.

    Raises:
        ConfigurationError: The address is not available.
    """
    listening = listen(host, port)
    port = listening.getsockname()[1]
    secret = secrets.token_urlsafe(24) if token or allowed_hosts or not is_loopback(host) else None
    address = f"http://{url_name(host)}:{port}/" + (f"?{TOKEN}={secret}" if secret else "")
    registry = SessionRegistry(
        chain, concurrency=concurrency, folder=folder, is_owners=is_loopback(host), lessons=lessons
    )
    app = create_app(registry)
    config = uvicorn.Config(
        Guard(
            app,
            port=port,
            token=secret,
            path=secret_path(folder) if folder and secret else None,
            allowed_hosts=allowed_hosts,
        ),
        log_level="warning",
        server_header=False,
        timeout_graceful_shutdown=2,
    )
    click.echo(f"The page is at {address} (press Ctrl-C to stop)", err=True)
    if lessons is not None:
        click.echo(
            f"The lessons are at {address.replace('/?', '/lessons?') if secret else address + 'lessons'}",
            err=True,
        )
    if secret:
        for_class = urlencode({"k": registry.class_key, TOKEN: secret})
        click.echo(f"Who runs and who waits: {address.partition('?')[0]}class?{for_class}", err=True)
    with listening, redirect_file(address) if secret else nullcontext(address) as url:
        if open_browser:
            webbrowser.open(url)
        first = chain if isinstance(chain, CodeChain) else next(iter(chain.values()))
        GracefulServer(config, first).run(sockets=[listening])
