"""Access control of the page: only this machine, or holders of a token.

On a loopback address the `Host` of a request must be a loopback name, which prevents DNS rebinding. On other
addresses, and behind a proxy of another name, a token is required, which the first request passes as a parameter.
In both cases requests and WebSockets from pages of other sites are refused, and a content security policy prevents
the page from loading anything from elsewhere.

Browsers send cookies to every port of a host, so a cookie with the token would reach the servers of other
users there. The token is therefore exchanged for a random path and a cookie restricted to that path; neither
grants access without the other. Where conversations are stored, the path stays the same, so that browsers are
recognised after a restart; the cookie that grants access still ends with the process.

Requests by `Sec-Fetch-Site`, in which browsers report the origin of a request (absent in other clients, and
without TLS beyond loopback):

| Sec-Fetch-Site | request | |
|---|---|---|
| absent, `none` (typed, a bookmark, another app), `same-origin` | any | allowed |
| `same-site`, `cross-site` | opens the page in a tab or window (a link) | allowed |
| `same-site`, `cross-site`, anything else | an image, script, frame, form, fetch, prefetch … | refused |
| any | WebSocket | allowed from its own `Origin` |
"""

from __future__ import annotations

import hmac
import re
import secrets
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from html import escape
from http.cookies import SimpleCookie
from pathlib import Path
from urllib.parse import quote, urlencode

from starlette.datastructures import MutableHeaders
from starlette.requests import HTTPConnection
from starlette.responses import PlainTextResponse, RedirectResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send
from starlette.websockets import WebSocketClose

from code_chains.apps.http_server import is_loopback
from code_chains.storage.files import atomic_write

TOKEN = "token"  # noqa: S105 (the name of the query parameter)
_CLIENT_ID = re.compile(r"[\w-]{20,64}")
_HOST = re.compile(r"(\[[0-9a-f:.]+\]|[a-z0-9.-]+)(?::\d{1,5})?", re.IGNORECASE | re.ASCII)
_PREFIX = re.compile(r"(/[\w.~-]+)*", re.ASCII)
_PREFIX_HEADER = b"x-forwarded-prefix"
_COOKIE_MAX_AGE_S = 365 * 86_400
_HEADERS = {
    "x-content-type-options": "nosniff",
    "referrer-policy": "no-referrer",
    "x-dns-prefetch-control": "off",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    # Vue compiles templates in the browser, hence unsafe-eval; no other origin can be reached.
    "content-security-policy": (
        "default-src 'self'; script-src 'self' 'unsafe-inline' 'unsafe-eval'; style-src 'self' 'unsafe-inline';"
        " img-src 'self' data: blob:; font-src 'self' data:; connect-src 'self'; frame-src 'self'; object-src 'none';"
        " base-uri 'self'; form-action 'self'; frame-ancestors 'none'"
    ),
}

_REDIRECT = """<!doctype html><meta charset="utf-8"><meta name="referrer" content="no-referrer">
<meta http-equiv="refresh" content="0; url={address}"><a href="{address}">The page</a>
"""


class Guard:
    """ASGI middleware. It identifies each client by a cookie, and passes the id in `scope["state"]["client_id"]`.

    Args:
        app: The application. With a token it is served below a random path, which is its `root_path`.
        port: The port. It is part of the names of cookies, which browsers share between the ports of a host.
        token: The token that grants access; None on a loopback address.
        path: The secret part of the path with a token, by which browsers are recognised after a restart; None for a new
            one, with cookies that end with this process.
        max_bytes: Maximum size of a request body.
        allowed_hosts: Names in addresses for which a proxy stands, whatever `Host` it passes.
    """

    app: ASGIApp

    def __init__(
        self,
        app: ASGIApp,
        *,
        port: int,
        token: str | None = None,
        path: str | None = None,
        max_bytes: int = 32 << 20,
        allowed_hosts: Sequence[str] = (),
    ) -> None:
        self._allowed_hosts = {name.lower() for name in allowed_hosts}
        self.app, self._token, self._max_bytes = app, token, max_bytes
        self._client_cookie, self._access_cookie = f"code_chains_client_{port}", f"code_chains_access_{port}"
        self._access_key = secrets.token_urlsafe(24)
        self._root_path = f"/{path or secrets.token_urlsafe(24)}" if token else ""
        self._lasting_cookies = [] if token and path is None else [self._client_cookie]

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Pass a request to the application, or refuse it."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        request = HTTPConnection(scope)
        refusal = self._refusal(request)
        if refusal is None:
            client_id = self._client_id(request)
            is_new = client_id != request.cookies.get(self._client_cookie)
            state = {**scope.get("state", {}), "client_id": client_id, "allowed_hosts": self._allowed_hosts}
            headers = [field for field in scope["headers"] if field[0] != _PREFIX_HEADER]
            # Invariant: NiceGUI puts the prefix before its scripts, whatever it is.
            headers += [(_PREFIX_HEADER, prefix.encode())] if (prefix := _prefix(request)) else []
            scope = {**scope, "headers": headers, "root_path": self._root_path, "state": state}

            def cookies() -> list[str]:  # The application may have chosen another id meanwhile.
                is_sent = scope["type"] == "http" and (is_new or state["client_id"] != client_id)
                return [self._cookie(request, self._client_cookie, state["client_id"])] if is_sent else []

            await self.app(scope, _limit_body(receive, self._max_bytes), _with_headers(send, cookies))
        elif scope["type"] == "websocket":
            await WebSocketClose(1008)(scope, receive, send)
        else:
            await refusal(scope, receive, _with_headers(send))

    def _client_id(self, request: HTTPConnection) -> str:
        client_id = request.cookies.get(self._client_cookie, "")
        return client_id if _CLIENT_ID.fullmatch(client_id) else new_client_id()

    def _refusal(self, request: HTTPConnection) -> Response | None:
        """Return the response to a request that is refused or redirected; None if it is allowed."""
        host, origin = request.headers.get("host", ""), request.headers.get("origin")
        if self._token is None and not is_loopback(_host_name(host)):
            return PlainTextResponse(
                "This page is only available on this machine: open it as http://127.0.0.1. "
                "Behind a proxy, start it with --allowed-host and the name in its address.",
                403,
            )
        if (origin is not None and not self._is_own(origin, host)) or self._is_cross_site(request):
            return PlainTextResponse("Requests from pages of other sites are refused.", 403)
        length = request.headers.get("content-length", "0")
        if length.isdigit() and int(length) > self._max_bytes:
            return PlainTextResponse("The request is too large.", 413)
        return None if self._token is None else self._check_token(request, self._token)

    def _is_own(self, origin: str, host: str) -> bool:
        name = origin.partition("://")[2]
        return name == host or _host_name(name) in self._allowed_hosts

    def _is_cross_site(self, request: HTTPConnection) -> bool:
        """Return whether a page of another origin makes a request other than opening this page in a tab or window."""
        if request.scope["type"] == "websocket" or request.headers.get("sec-fetch-site", "none") in (
            "none",
            "same-origin",
        ):
            return False
        is_navigation = (
            request.scope["method"] == "GET"
            and request.headers.get("sec-fetch-mode") == "navigate"
            and request.headers.get("sec-fetch-dest") == "document"
            and "sec-purpose" not in request.headers  # Not a speculative prefetch.
        )
        path = request.scope["path"].removeprefix(self._root_path)
        return not (is_navigation and (path == "/" or _is_of_lessons(path)))

    def _check_token(self, request: HTTPConnection, token: str) -> Response | None:
        is_below = request.scope["path"].startswith(f"{self._root_path}/")
        if is_below and _is_equal(request.cookies.get(self._access_cookie, ""), self._access_key):
            return None
        if request.scope["type"] == "http" and _is_equal(request.query_params.get(TOKEN, ""), token):
            response = RedirectResponse(f"{_prefix(request)}{self._root_path}{_target(request)}", 303)
            cookie = self._cookie(request, self._access_cookie, self._access_key)
            response.headers.append("set-cookie", cookie)
            return response
        return PlainTextResponse(
            "Open the address that `code-chains serve` printed, including its token.", 401
        )

    def _cookie(self, request: HTTPConnection, name: str, value: str) -> str:
        cookie: SimpleCookie = SimpleCookie({name: value})
        path = f"{_prefix(request)}{self._root_path}/"
        attributes = {"httponly": True, "samesite": "Lax", "path": path}
        if request.url.scheme == "https":  # Also of a proxy on this machine, which passes X-Forwarded-Proto.
            attributes["secure"] = True
        if name in self._lasting_cookies:
            attributes["max-age"] = _COOKIE_MAX_AGE_S
        for attribute, setting in attributes.items():
            cookie[name][attribute] = setting
        return cookie[name].OutputString()


def new_client_id() -> str:
    """Return the id of a client that is not known yet."""
    return secrets.token_urlsafe(24)


def secret_path(folder: Path) -> str:
    """Return the secret path that is stored in a folder, which only its owner may read; a new one if there is none."""
    file = folder / "path"
    if not file.exists() or not _CLIENT_ID.fullmatch(file.read_text(encoding="utf-8", errors="replace")):
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        atomic_write(file, secrets.token_urlsafe(24).encode(), mode=0o600)
    return file.read_text(encoding="ascii")


@contextmanager
def redirect_file(address: str) -> Iterator[str]:
    """Create a file that redirects to an address with a token, and yield its URL for a browser.

    Other users can read the command line of a browser, but not this file.
    """
    with tempfile.NamedTemporaryFile("w", prefix="code-chains-", suffix=".html") as file:
        file.write(_REDIRECT.format(address=escape(address)))
        file.flush()
        yield Path(file.name).as_uri()


def _host_name(host: str) -> str:
    """Return the name in a `Host` header, without its port; empty for what is none, such as a part of a URL."""
    match = _HOST.fullmatch(host)
    return match[1].strip("[]").lower() if match else ""


def _prefix(request: HTTPConnection) -> str:
    """Return the path below which a proxy serves the page."""
    prefix = request.headers.get("x-forwarded-prefix", "").rstrip("/")
    return prefix if _PREFIX.fullmatch(prefix) else ""


def _target(request: HTTPConnection) -> str:
    """Return what a request with the token is to open, without it."""
    path = request.scope["path"]
    if _is_of_lessons(path):
        return quote(path)
    is_class = path == "/class"
    return f"/class?{urlencode({'k': request.query_params.get('k', '')})}" if is_class else "/"


def _is_of_lessons(path: str) -> bool:
    return path == "/lessons" or path.startswith("/lessons/")


def _is_equal(value: str, secret: str) -> bool:
    return hmac.compare_digest(value.encode(), secret.encode())


def _limit_body(receive: Receive, max_bytes: int) -> Receive:
    """End a request whose body is too large, whatever length it declares."""
    received = 0

    async def limited() -> Message:
        nonlocal received
        message = await receive()
        received += len(message.get("body", b""))
        return message if received <= max_bytes else {"type": "http.disconnect"}

    return limited


def _with_headers(send: Send, cookies: Callable[[], list[str]] = list) -> Send:
    """Add security headers that the application does not set itself."""

    async def send_with_headers(message: Message) -> None:
        if message["type"] == "http.response.start":
            headers = MutableHeaders(scope=message)
            for name, value in _HEADERS.items():
                headers.setdefault(name, value)
            for cookie in cookies():
                headers.append("set-cookie", cookie)
        await send(message)

    return send_with_headers
