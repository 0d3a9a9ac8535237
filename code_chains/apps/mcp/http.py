"""The Model Context Protocol over streamable HTTP: for several clients at once, each with a token.

| request | refused unless |
|---|---|
| any | `Authorization: Bearer …` has one of the tokens (401) |
| any | `Host` is a name of this machine, or one that was allowed (421): a foreign name that points here is none |
| of a browser | `Origin` is this server (403) |
"""

from __future__ import annotations

import secrets
import socket
import tempfile
from collections.abc import Sequence
from pathlib import Path

import click

from code_chains.apps.mcp.clients import IDLE_TIMEOUT_S, MAX_SESSIONS
from code_chains.apps.mcp.files import SharedFiles
from code_chains.apps.mcp.server import create_server
from code_chains.apps.mcp.tokens import TokenVerifier
from code_chains.assembly.code_chain import CodeChain
from code_chains.errors import ConfigurationError, needs
from code_chains.records.printable import printable
from code_chains.temporary import process_folder

with needs("mcp", "command", "mcp --http"):
    import uvicorn
    from mcp.server.transport_security import TransportSecuritySettings

    from code_chains.apps.http_server import GracefulServer, is_loopback, is_wildcard, listen, url_name

PATH = "/mcp"
_LOOPBACK_NAMES = ("127.0.0.1", "localhost", "[::1]")


def check_access(host: str, tokens: Sequence[str]) -> None:
    """Raise if a server would be open to others, or if a token is invalid.

    Raises:
        ConfigurationError: It is so.
    """
    TokenVerifier(tokens)
    if not tokens and not is_loopback(host):
        raise ConfigurationError("host", host, "a --token as well, as others can reach this address")


def transport_security(host: str, port: int, allowed_hosts: Sequence[str] = ()) -> TransportSecuritySettings:
    """Return which `Host` and `Origin` requests may have.

    Args:
        host: The address that the server listens on.
        port: The port.
        allowed_hosts: Further names by which clients reach it, e.g. that of a proxy.
    """
    own = [f"{name}:{port}" for name in (*_LOOPBACK_NAMES, *_own_names(host))]
    allowed = [allowed for name in allowed_hosts for allowed in (name, f"{name}:*")]
    origins = [f"{scheme}://{name}" for name in allowed for scheme in ("http", "https")]
    return TransportSecuritySettings(
        allowed_hosts=own + allowed, allowed_origins=[f"http://{name}" for name in own] + origins
    )


def _own_names(host: str) -> set[str]:
    """Return the names in URLs of a server that listens on a host beyond loopback addresses."""
    if not is_wildcard(host):
        return {url_name(host)}
    try:
        found = {str(address[4][0]) for address in socket.getaddrinfo(socket.gethostname(), None)}
    except OSError:  # The name of this machine is in no directory.
        found = set()
    return {url_name(name) for name in (host, *found)}


def serve_http(
    chain: CodeChain,
    *,
    host: str = "127.0.0.1",
    port: int = 8081,
    tokens: Sequence[str] = (),
    allowed_hosts: Sequence[str] = (),
    answers: bool = True,
    shared: SharedFiles | None = None,
    description: str = "run_python, answer_with_code",
) -> None:
    """Serve streamable HTTP until interrupted, or until running calls have finished after SIGTERM.

    Args:
        chain: What runs programs and answers.
        host: The address to listen on.
        port: The port; 0 selects a free one.
        tokens: Bearer tokens, one for each client; without any, a new one is printed. Others than loopback addresses
            need at least one.
        allowed_hosts: Further names by which clients reach the server, e.g. that of a proxy.
        answers: Whether to offer `answer_with_code`.
        shared: Files of this machine that all programs may read.
        description: What is served, as it is printed with the address.

    Raises:
        ConfigurationError: The address is not available, or needs a token; or a token is too short or has other
            characters than such headers may have.
    """
    check_access(host, tokens)
    printed = [] if tokens else [secrets.token_urlsafe(24)]
    with (
        listen(host, port) as listening,
        tempfile.TemporaryDirectory(prefix="mcp-", dir=process_folder()) as folder,
    ):
        port = listening.getsockname()[1]
        server = create_server(
            chain, Path(folder), answers=answers, shared=shared, tokens=[*tokens, *printed]
        )
        app = server.streamable_http_app(
            streamable_http_path=PATH,
            session_idle_timeout=IDLE_TIMEOUT_S,
            max_sessions=MAX_SESSIONS,
            transport_security=transport_security(host, port, allowed_hosts),
        )
        config = uvicorn.Config(app, log_level="warning", server_header=False, timeout_graceful_shutdown=2)
        address = f"http://{url_name(host)}:{port}{PATH}"
        click.echo(printable(f"Serving at {address}: {description} (press Ctrl-C to stop)"), err=True)
        for token in printed:
            click.echo(f"Clients need the header Authorization: Bearer {token}", err=True)
        GracefulServer(config, chain, server.clients.disconnect_all).run(sockets=[listening])
