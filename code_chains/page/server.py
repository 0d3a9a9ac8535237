"""The server of the page, and of what programs made."""

from __future__ import annotations

import secrets
import signal
import socket
import webbrowser
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, nullcontext
from types import FrameType

import click

from code_chains.code_chain import CodeChain
from code_chains.draining import drain_then
from code_chains.errors import ConfigurationError, InputError, needs
from code_chains.export import safe_name
from code_chains.page.visits import Visits
from code_chains.state import Artifact

with needs("ui", "command", "serve"):
    import uvicorn
    from fastapi import FastAPI, Request, Response
    from fastapi.responses import HTMLResponse, PlainTextResponse
    from nicegui import ui

    from code_chains.page.app import Page
    from code_chains.page.guard import TOKEN, Guard, is_loopback, opening
    from code_chains.page.view import IMAGES

__all__ = ["create_app", "serve"]

_PAPER = b"""<!doctype html><meta charset="utf-8"><style>
body { margin: 2px 0; font: 14px/18px system-ui, sans-serif; color: #1c1917 }
table { border-collapse: collapse; font-variant-numeric: tabular-nums; border: 0 }
th, td { padding: 6px 14px; border: 0; border-bottom: 1px solid rgb(28 25 23 / 14%); text-align: right }
thead th { border-bottom: 1px solid rgb(28 25 23 / 40%); font-weight: 600 }
</style>"""
_SANDBOXED = "sandbox; default-src 'none'; style-src 'unsafe-inline'; img-src data:; frame-ancestors 'self'"


def create_app(visits: Visits) -> FastAPI:
    """The application that shows the page; `Guard` belongs in front of it.

    Args:
        visits: The visitors, entered and left with the application.
    """

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        async with visits:
            yield

    app = FastAPI(lifespan=lifespan, docs_url=None, redoc_url=None, openapi_url=None)

    @app.get("/made/{entry}/{number}")
    async def made(request: Request, entry: str, number: int) -> Response:
        visit = visits.find(request.state.visitor)
        artifact = visit.artifact(entry, number) if visit else None
        return _shut(artifact) if artifact else Response("There is no such thing.", 404, media_type="text/plain")

    @ui.page("/", title="code_chains", language="en-US")
    def page(request: Request) -> Response | None:
        try:
            Page(visits, request.state.visitor)
        except InputError as error:
            return PlainTextResponse(str(error), 503)
        return None

    ui.run_with(app, tailwind=False, show_welcome_message=False, reconnect_timeout=10.0)
    return app


def _shut(artifact: Artifact) -> Response:
    """What a program made, so that nothing in it runs, even if it is opened by its address."""
    headers = {"content-security-policy": _SANDBOXED, "cache-control": "private, max-age=3600"}
    if artifact.media_type == "text/html":
        return HTMLResponse(_PAPER + artifact.data, headers=headers)
    if artifact.media_type in IMAGES:
        return Response(artifact.data, media_type=artifact.media_type, headers=headers)
    name = safe_name(artifact.name).encode("ascii", "replace").decode()
    headers["content-disposition"] = f'attachment; filename="{name}"'
    return Response(artifact.data, media_type="application/octet-stream", headers=headers)


def serve(
    chain: CodeChain,
    *,
    host: str = "127.0.0.1",
    port: int = 8080,
    token: bool = False,
    concurrency: int = 2,
    open_browser: bool = True,
) -> None:
    """Serve the page until it is interrupted.

    Args:
        chain: What answers.
        host: Where to listen.
        port: The port; 0 for any that is free.
        token: Whether a token is needed, which is a part of the address that is printed. It keeps other users of this
            machine out; elsewhere than on a loopback address it is always needed.
        concurrency: How many questions are worked on at a time.
        open_browser: Whether to show it.

    Raises:
        ConfigurationError: It cannot be served there.
    """
    listening = _listen(host, port)
    port = listening.getsockname()[1]
    secret = secrets.token_urlsafe(24) if token or not is_loopback(host) else None
    address = f"http://{_shown(host)}:{port}/" + (f"?{TOKEN}={secret}" if secret else "")
    app = create_app(Visits(chain, concurrency=concurrency))
    config = uvicorn.Config(
        Guard(app, port=port, token=secret), log_level="warning", server_header=False, timeout_graceful_shutdown=2
    )
    click.echo(f"The page is at {address} (Ctrl-C ends it)", err=True)
    with listening, opening(address) if secret else nullcontext(address) as shown:
        if open_browser:
            webbrowser.open(shown)
        _Server(config, chain).run(sockets=[listening])


class _Server(uvicorn.Server):
    """A server that lets questions end which are being answered when it is asked to end; asked again, it ends at once."""

    def __init__(self, config: uvicorn.Config, chain: CodeChain) -> None:
        super().__init__(config)
        self._chain, self._is_leaving = chain, False

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Begin to end."""
        if sig != signal.SIGTERM or self._is_leaving:
            super().handle_exit(sig, frame)
            return
        self._is_leaving = True
        drain_then(self._chain, lambda: super(_Server, self).handle_exit(sig, frame))


def _listen(host: str, port: int) -> socket.socket:
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError) as error:
        instead = f"another address, e.g. --port 0 for any port that is free ({error})"
        raise ConfigurationError("host, port", (host, port), instead) from error


def _shown(host: str) -> str:
    """The name under which others find this machine, where it listens on all addresses."""
    name = socket.gethostname() if host in ("0.0.0.0", "::", "") else host  # noqa: S104 (compared, not bound)
    return f"[{name}]" if ":" in name else name
