"""A proxy as nginx is by default: it passes its upstream's `Host` instead of that of the request."""

from __future__ import annotations

import re
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit


@contextmanager
def proxy_before(address: str, *, prefix: str = "") -> Iterator[str]:
    """Run a proxy in front of a server, and yield its address, which names `localhost`.

    Args:
        address: The server.
        prefix: The path below which it serves, as in `/learn`.
    """
    upstream = urlsplit(address)
    with socket.create_server(("127.0.0.1", 0)) as listening, ThreadPoolExecutor(200) as threads:
        accepted: list[socket.socket] = []
        threads.submit(
            _accept, listening, (upstream.hostname or "", upstream.port or 80), prefix, threads, accepted
        )
        yield f"http://localhost:{listening.getsockname()[1]}{prefix}/"
        for one in (listening, *accepted):
            with suppress(OSError):
                one.shutdown(socket.SHUT_RDWR)
    for one in accepted:
        one.close()


def _accept(
    listening: socket.socket,
    upstream: tuple[str, int],
    prefix: str,
    threads: ThreadPoolExecutor,
    accepted: list[socket.socket],
) -> None:
    with suppress(OSError):  # It was closed.
        while True:
            client, _ = listening.accept()
            server = socket.create_connection(upstream)
            accepted += [client, server]
            headers = f"\r\nHost: {upstream[0]}:{upstream[1]}\r\n"
            headers += f"X-Forwarded-Prefix: {prefix}\r\n" if prefix else ""
            threads.submit(_pass_on, client, server, headers.encode(), prefix.encode())
            threads.submit(_pass_on, server, client)


def _pass_on(source: socket.socket, target: socket.socket, headers: bytes = b"", prefix: bytes = b"") -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            if headers:
                data = re.sub(rb"(?i)\r\nhost: [^\r]*\r\n", headers, data)
                data = re.sub(rb"^([A-Z]+ )" + prefix, rb"\1", data)
            target.sendall(data)
    for one in (source, target):
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
