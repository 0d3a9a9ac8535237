"""Who may speak to the page: this machine alone, or whoever holds the token.

On a loopback address a request must be meant for it (its `Host` is a loopback name), so that no site whose name was made to
point here gets in. Elsewhere a token is needed, which comes with the address once and is kept in a cookie. In both cases a
request or websocket that another site's page makes is refused, and what is served may load nothing from anywhere else.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import secrets
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from html import escape
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import urlsplit

from starlette.datastructures import URL, MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

__all__ = ["TOKEN", "Guard", "is_loopback", "opening"]

TOKEN = "token"  # noqa: S105 (the name of the parameter)
_VISITOR = re.compile(r"[\w-]{20,64}")
_YEAR = 365 * 86_400
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-dns-prefetch-control": "off",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    # Vue compiles templates in the browser, hence unsafe-eval; no address but this one can be reached.
    "content-security-policy": (
        "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline';"
        " img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; frame-src 'self'; object-src 'none';"
        " base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
    ),
}

_LEADS_ON = """<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}"><a href="{address}">The page</a>
"""


def is_loopback(host: str) -> bool:
    """Whether a host name or address is this machine's own.

    Example:
        >>> [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "192.168.1.5", "example.org", "")]
        [True, True, True, False, False, False]
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


class Guard:
    """An ASGI application in front of another. It names each visitor in `scope["state"]["visitor"]`, by a cookie.

    Args:
        app: The application.
        port: Where it is served. Cookies are not kept apart by port, so that it is a part of their names.
        token: What must be known; None on a loopback address.
        most: Bytes that a request may bring.
    """

    def __init__(self, app: ASGIApp, *, port: int, token: str | None = None, most: int = 32 << 20) -> None:
        self.app, self._token, self._most = app, token, most
        self._visitor_cookie, self._token_cookie = f"code_chains_visitor_{port}", f"code_chains_token_{port}"

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Let a request through, or refuse it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        asked = HTTPConnection(scope)
        refusal = self._refusal(asked)
        if refusal is None:
            visitor = self._visitor(asked)
            new = visitor != asked.cookies.get(self._visitor_cookie)
            scope.setdefault("state", {})["visitor"] = visitor
            cookies = [_cookie(self._visitor_cookie, visitor)] if new and scope["type"] == "http" else []
            await self.app(scope, _bounded(receive, self._most), _with_headers(send, cookies))
        elif scope["type"] == "websocket":
            await WebSocketClose(1008)(scope, receive, send)
        else:
            await refusal(scope, receive, _with_headers(send))

    def _visitor(self, asked: HTTPConnection) -> str:
        known = asked.cookies.get(self._visitor_cookie, "")
        return known if _VISITOR.fullmatch(known) else secrets.token_urlsafe(24)

    def _refusal(self, asked: HTTPConnection) -> Response | None:
        """What is answered instead; None where all is well."""
        host, origin = asked.headers.get("host", ""), asked.headers.get("origin")
        if self._token is None and not is_loopback(_name(host)):
            return PlainTextResponse("This page is for this machine alone: open it as http://127.0.0.1.", 403)
        if origin is not None and origin.partition("://")[2] != host:
            return PlainTextResponse("Another site's page may not ask here.", 403)
        length = asked.headers.get("content-length", "0")
        if length.isdigit() and int(length) > self._most:
            return PlainTextResponse("That is too much at once.", 413)
        return None if self._token is None else self._admission(asked, self._token)

    def _admission(self, asked: HTTPConnection, token: str) -> Response | None:
        if _same(asked.cookies.get(self._token_cookie, ""), token):
            return None
        if asked.scope["type"] == "http" and _same(asked.query_params.get(TOKEN, ""), token):
            response = RedirectResponse(_without_token(asked.url), 303)
            response.headers.append("set-cookie", _cookie(self._token_cookie, token))
            return response
        return PlainTextResponse("Open the address that `code-chains serve` has printed, with its token.", 401)


@contextmanager
def opening(address: str) -> Iterator[str]:
    """What a browser is told to open: its command line can be read by other users, hence a file of ours that leads on."""
    with tempfile.NamedTemporaryFile("w", prefix="code-chains-", suffix=".html") as file:
        file.write(_LEADS_ON.format(address=escape(address)))
        file.flush()
        yield Path(file.name).as_uri()


def _name(host: str) -> str:
    """The name in a `Host` header, without its port."""
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""


def _same(given: str, token: str) -> bool:
    return hmac.compare_digest(given.encode(), token.encode())


def _without_token(url: URL) -> str:
    """The path with its other parameters, so that the token stays in no history."""
    rest = url.remove_query_params(TOKEN)
    path = "/" + rest.path.lstrip("/\\")  # Two slashes would begin another machine's address.
    return f"{path}?{rest.query}" if rest.query else path


def _cookie(name: str, value: str) -> str:
    cookie: SimpleCookie = SimpleCookie({name: value})
    for attribute, given in {"httponly": True, "samesite": "Lax", "path": "/", "max-age": _YEAR}.items():
        cookie[name][attribute] = given
    return cookie[name].OutputString()


def _bounded(receive: Receive, most: int) -> Receive:
    """Ends a request that brings more than it may, whatever length it names."""
    came = 0

    async def bounded() -> Message:
        nonlocal came
        message = await receive()
        came += len(message.get("body", b""))
        return message if came <= most else {"type": "http.disconnect"}

    return bounded


def _with_headers(send: Send, cookies: list[str] | None = None) -> Send:
    """Adds the headers that say what the browser may do, where the application does not say it itself."""

    async def dressed(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            for cookie in cookies or []:
                headers.append("set-cookie", cookie)
        await send(message)

    return dressed
