"""What the page of questions and that of lessons are served with: an address, a token if others can reach it, a shutdown."""

from __future__ import annotations

import json
import secrets
import webbrowser
from contextlib import nullcontext
from pathlib import Path
from urllib.parse import urlencode

import click
import uvicorn
from fastapi import FastAPI, Request
from nicegui import Client, ui

from code_chains.apps.http_server import GracefulServer, listen, url_name
from code_chains.apps.page.address import Address
from code_chains.apps.page.guard import TOKEN, Guard, redirect_file, secret_path
from code_chains.assembly.code_chain import CodeChain

MAX_PAGES, CONNECT_TIMEOUT_S = 64, 5.0
"""Beyond this number of pages, those are deleted to which no browser has connected within the timeout."""
RECONNECT_TIMEOUT_S = 10.0
_NO_SCRIPT = "This page needs JavaScript, which this browser does not run."
_CHECK_ADDRESS = """addEventListener("DOMContentLoaded", () => {
    const [host, allowed] = %s;
    if (host === location.host || allowed.includes(location.hostname)) return;
    document.body.textContent = `The proxy at ${location.host} passes the Host “${host}” to code_chains, so that this page `
        + `cannot work. Have it pass its own, or start code-chains serve with --allowed-host ${location.hostname}.`;
});"""


def host_app(
    app: FastAPI,
    address: Address,
    *,
    class_key: str,
    open_browser: bool,
    folder: Path | None,
    chain: CodeChain | None = None,
    is_class: bool = False,
) -> None:
    """Serve an application behind a `Guard` until interrupted, and print its addresses.

    Args:
        app: The application.
        address: Where it is served.
        class_key: The secret in the address of the view of a class.
        open_browser: Whether to open it in a browser.
        folder: Where the secret of a page with a token is kept over restarts; None for nowhere.
        chain: What answers questions, which is let finish at the end.
        is_class: Whether the view of a class is of use on this machine alone, too.

    Raises:
        ConfigurationError: The address is not available.
    """
    listening = listen(address.host, address.port)
    port = listening.getsockname()[1]
    is_secret = address.token or bool(address.allowed_hosts) or not address.is_local
    secret = secrets.token_urlsafe(24) if is_secret else None
    opened = f"http://{url_name(address.host)}:{port}/"
    shown = f"{opened}?{TOKEN}={secret}" if secret else opened
    guard = Guard(
        app,
        port=port,
        token=secret,
        path=secret_path(folder) if folder and secret else None,
        allowed_hosts=address.allowed_hosts,
    )
    config = uvicorn.Config(guard, log_level="warning", server_header=False, timeout_graceful_shutdown=2)
    click.echo(f"The page is at {shown} (press Ctrl-C to stop)", err=True)
    if secret or is_class:
        for_class = urlencode({"k": class_key, **({TOKEN: secret} if secret else {})})
        click.echo(f"Who runs and who waits: {opened}class?{for_class}", err=True)
    with listening, redirect_file(shown) if secret else nullcontext(shown) as url:
        if open_browser:
            webbrowser.open(url)
        GracefulServer(config, chain).run(sockets=[listening])


def with_pages(app: FastAPI) -> FastAPI:
    """Return an application with the pages that were declared."""
    ui.run_with(app, tailwind=False, show_welcome_message=False, reconnect_timeout=RECONNECT_TIMEOUT_S)
    return app


def begin_page(request: Request) -> None:
    """Make room for a page, which says so in the browser if it cannot work at its address, or without scripts."""
    if len(Client.instances) > MAX_PAGES:
        Client.prune_instances(client_age_threshold=CONNECT_TIMEOUT_S)
    hosts = json.dumps([request.headers.get("host", ""), sorted(request.state.allowed_hosts)])
    script = _CHECK_ADDRESS % hosts.replace("<", "\\u003c")
    ui.add_head_html(f"<script>{script}</script><noscript>{_NO_SCRIPT}</noscript>")
