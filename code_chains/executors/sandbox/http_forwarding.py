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
from typing import NamedTuple

INSIDE_PORT = 80
MAX_HEAD_BYTES = CHUNK_BYTES = 1 << 16
REQUEST_TIMEOUT_S = 30.0
"""Seconds until a request has arrived, and the connection to its host stands."""
GONE_TIMEOUT_S = 30.0
"""Seconds that a host has for a response once the program has ended its side."""
# Not TRACE, whose response is the request with its headers, nor CONNECT.
_REQUEST = re.compile(rb"(?:GET|HEAD|POST|PUT|PATCH|DELETE|OPTIONS) /[\x21-\x7e]* HTTP/1\.[01]")
_FIELD = re.compile(rb"([!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}):[ \t]*([\t\x20-\x7e\x80-\xff]*)")
RESERVED = {
    *("host", "connection", "proxy-connection", "keep-alive", "upgrade", "te", "trailer", "expect"),
    *("content-length", "transfer-encoding"),
}
"""Headers that say where a request goes and where it ends: they are no credentials."""


class _Request(NamedTuple):
    """The head of a request as it leaves this machine, and the bytes that follow."""

    head: bytes
    length: int


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
        answer = await _exchange(reader, writer, host, port, headers)
        if answer:
            writer.write(answer)
        writer.close()
        async with asyncio.timeout(GONE_TIMEOUT_S):
            await writer.wait_closed()
    except (OSError, TimeoutError):  # The program must not take a part of a response for all of it.
        writer.transport.abort()
    finally:
        writer.close()


async def _exchange(
    reader: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    host: str,
    port: int,
    headers: Mapping[str, str],
) -> bytes:
    """Forward one request and its response; return what to answer in place of the host, if anything."""
    try:
        async with asyncio.timeout(REQUEST_TIMEOUT_S):
            request = with_headers(await reader.readuntil(b"\r\n\r\n"), host, headers)
            if isinstance(request, str):
                return _refusal("400 Bad Request", request)
            from_host, to_host = await asyncio.open_connection(host, port, ssl=tls_context())
    except asyncio.IncompleteReadError:
        return b""
    except asyncio.LimitOverrunError:
        return _refusal("431 Request Header Fields Too Large", "Send fewer headers.")
    except (OSError, TimeoutError) as error:
        return _refusal("502 Bad Gateway", f"{host} cannot be reached: {type(error).__name__}.")
    try:
        to_host.write(request.head)
        await _copy_both_ways(reader, to_host, from_host, writer, request.length)
    finally:
        to_host.transport.abort()
    return b""


async def _copy_both_ways(
    reader: asyncio.StreamReader,
    to_host: asyncio.StreamWriter,
    from_host: asyncio.StreamReader,
    writer: asyncio.StreamWriter,
    length: int,
) -> None:
    """Copy the body and the response until this has ended.

    Raises:
        TimeoutError: The program has ended its side, and the response takes too long.
    """
    asking = asyncio.create_task(_send(reader, to_host, length))
    answering = asyncio.create_task(_copy(from_host, writer))
    try:
        await asyncio.wait({asking, answering}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.wait_for(answering, None if answering.done() else GONE_TIMEOUT_S)
    finally:
        for task in (asking, answering):
            task.cancel()
        await asyncio.gather(asking, answering, return_exceptions=True)


async def _send(reader: asyncio.StreamReader, to_host: asyncio.StreamWriter, length: int) -> None:
    """Send as many bytes as the request has, and drop what follows until the program ends its side."""
    while data := await reader.read(CHUNK_BYTES):
        # Invariant: nothing but this request follows the head, however a program goes on.
        part, length = data[:length], max(0, length - len(data))
        if part:
            to_host.write(part)
            await to_host.drain()


async def _copy(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    while data := await source.read(CHUNK_BYTES):
        target.write(data)
        await target.drain()


def with_headers(head: bytes, host: str, headers: Mapping[str, str]) -> _Request | str:
    r"""Return a request as it leaves this machine; why it does not, as a sentence, if it is none.

    Example:
        >>> with_headers(b"GET /v1 HTTP/1.1\r\nHost: other\r\nX-Key: mine\r\n\r\n", "api.org", {"X-Key": "ours"}).head
        b'GET /v1 HTTP/1.1\r\nHost: api.org\r\nConnection: close\r\nX-Key: ours\r\n\r\n'
    """
    request, *lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    fields = list(filter(None, map(_FIELD.fullmatch, lines)))
    if not _REQUEST.fullmatch(request) or len(fields) < len(lines):
        return "Send an HTTP/1.1 request with a path."
    named = [(plain_name(field[1].decode()), field) for field in fields]
    lengths = [field[2].strip() for name, field in named if name == "content-length"]
    is_length = all(re.fullmatch(rb"[0-9]{1,15}", length) for length in lengths)
    if any(name == "transfer-encoding" for name, _ in named) or len(lengths) > 1 or not is_length:
        return "Send the body as a whole, with one Content-Length."
    dropped = RESERVED.union(map(plain_name, headers))
    kept = [field[0] for name, field in named if name not in dropped]
    added = [f"{name}: {value}".encode("latin-1") for name, value in headers.items()]
    # Invariant: the length is stated as it was counted: a name that this host takes for it may be none for that one.
    length = [b"Content-Length: " + lengths[0]] if lengths else []
    own = [b"Host: " + host.encode(), b"Connection: close", *length]
    return _Request(b"\r\n".join([request, *own, *added, *kept, b"", b""]), int(lengths[0]) if lengths else 0)


def plain_name(name: str) -> str:
    """Return the name of a header as servers compare it; some take an underscore, or more, for a hyphen."""
    return re.sub(r"[^a-z0-9]", "-", name.lower())


@functools.cache
def tls_context() -> ssl.SSLContext:
    """Return the context that verifies certificates against the authorities that this machine trusts."""
    context = ssl.create_default_context()
    context.set_alpn_protocols(["http/1.1"])
    return context


def _refusal(status: str, reason: str) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\nContent-Type: text/plain\r\nContent-Length: {len(reason)}\r\nConnection: close"
    )
    return f"{head}\r\n\r\n{reason}".encode()
