"""HTTP requests to which this process adds headers: they leave a sandbox as plain HTTP, and this machine as HTTPS.

Invariant: a program never holds the connection on which a header travels, so that it can neither read the header nor choose
where it goes.
"""

from __future__ import annotations

import asyncio
import functools
import re
import socket
import ssl
from collections.abc import Mapping
from contextlib import suppress

INSIDE_PORT = 80
MAX_HEAD_BYTES, CHUNK_BYTES = 1 << 16, 1 << 16
REQUEST_TIMEOUT_S = 30.0
"""Seconds until a request has arrived, and the connection to its host stands."""
_REQUEST = re.compile(rb"[A-Z]{1,20} /[\x21-\x7e]* HTTP/1\.[01]")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}):[ \t]*[^\r\n\0]*")
_OURS = {"host", "connection", "proxy-connection", "keep-alive", "upgrade"}
"""Headers of a program that are replaced or dropped: each connection is for one request."""


async def forward_request(client: socket.socket, host: str, port: int, headers: Mapping[str, str]) -> None:
    """Send the request of a program to a host with headers of ours, and return the response.

    Args:
        client: The connection of the program; the caller closes it.
        host: Where the request goes, whatever it names itself. Its certificate must be valid.
        port: The port for HTTPS.
        headers: What is added; headers of the program with these names are dropped.
    """
    reader, writer = await asyncio.open_connection(sock=client.dup(), limit=MAX_HEAD_BYTES)
    try:
        async with asyncio.timeout(REQUEST_TIMEOUT_S):
            head = with_headers(await reader.readuntil(b"\r\n\r\n"), host, headers)
            if head is None:
                writer.write(_refusal("400 Bad Request", "Send an HTTP/1.1 request with a path."))
                return
            from_host, to_host = await asyncio.open_connection(host, port, ssl=tls_context())
        try:
            to_host.write(head)
            sending = asyncio.create_task(_copy(reader, to_host))
            try:
                await _copy(from_host, writer)
            finally:
                sending.cancel()
        finally:
            to_host.close()
    except (OSError, TimeoutError) as error:
        writer.write(_refusal("502 Bad Gateway", f"{host} cannot be reached: {type(error).__name__}."))
    except (asyncio.IncompleteReadError, asyncio.LimitOverrunError):
        writer.write(_refusal("431 Request Header Fields Too Large", "Send fewer headers."))
    finally:
        writer.close()
        with suppress(OSError):
            await writer.wait_closed()


def with_headers(head: bytes, host: str, headers: Mapping[str, str]) -> bytes | None:
    r"""Return the head of a request as it leaves this machine; None if it is none.

    Example:
        >>> with_headers(b"GET /v1 HTTP/1.1\r\nHost: other\r\nX-Key: mine\r\n\r\n", "api.org", {"X-Key": "ours"})
        b'GET /v1 HTTP/1.1\r\nHost: api.org\r\nConnection: close\r\nX-Key: ours\r\n\r\n'
    """
    request, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    fields = list(map(_FIELD.fullmatch, lines))
    if not _REQUEST.fullmatch(request) or not all(fields):
        return None
    dropped = _OURS.union(map(str.lower, headers))
    kept = [field[0] for field in fields if field and field[1].decode().lower() not in dropped]
    added = [f"{name}: {value}".encode("latin-1") for name, value in headers.items()]
    own = [b"Host: " + host.encode(), b"Connection: close"]
    return b"\r\n".join([request, *own, *added, *kept, b"", b""])


@functools.cache
def tls_context() -> ssl.SSLContext:
    """Return what verifies certificates, by those that this machine trusts."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _refusal(status: str, reason: str) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(reason)}\r\nConnection: close"
    )
    return f"{head}\r\n\r\n{reason}".encode()


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(CHUNK_BYTES):
        target.write(data)
        await target.drain()
