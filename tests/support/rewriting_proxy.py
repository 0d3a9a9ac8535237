"""A proxy as nginx is by default: it passes its upstream's `Host` instead of that of the request. It can be cut."""

from __future__ import annotations

import re
import socket
import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from urllib.parse import urlsplit


class Proxy:
    """A proxy that is listening.

    Args:
        address: The server.
        prefix: The path below which it serves, as in `/learn`.

    Attributes:
        address: The address of the proxy, which names `localhost`.
    """

    def __init__(self, address: str, prefix: str) -> None:
        upstream = urlsplit(address)
        self._upstream = upstream.hostname or "", upstream.port or 80
        self._prefix = prefix
        self._connections: list[socket.socket] = []
        self._is_cut = threading.Event()
        self._threads = ThreadPoolExecutor(200)
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.address = f"http://localhost:{self._listening.getsockname()[1]}{prefix}/"
        self._threads.submit(self._accept)

    def cut(self) -> None:
        """End all connections, and refuse further ones."""
        self._is_cut.set()
        _shut_down(*self._connections)

    def mend(self) -> None:
        """Take connections again."""
        self._is_cut.clear()

    def close(self) -> None:
        """End all connections and threads."""
        _shut_down(self._listening, *self._connections)
        self._threads.shutdown()
        for one in (self._listening, *self._connections):
            one.close()

    def _accept(self) -> None:
        prefix = self._prefix
        headers = f"\r\nHost: {self._upstream[0]}:{self._upstream[1]}\r\n"
        headers += f"X-Forwarded-Prefix: {prefix}\r\n" if prefix else ""
        with suppress(OSError):  # It was closed.
            while True:
                client, _ = self._listening.accept()
                if self._is_cut.is_set():
                    client.close()
                    continue
                server = socket.create_connection(self._upstream)
                self._connections += [client, server]
                self._threads.submit(_pass_on, client, server, headers.encode(), prefix.encode())
                self._threads.submit(_pass_on, server, client)


@contextmanager
def proxy_before(address: str, *, prefix: str = "") -> Iterator[Proxy]:
    """Run a proxy in front of a server."""
    proxy = Proxy(address, prefix)
    try:
        yield proxy
    finally:
        proxy.close()


def _pass_on(source: socket.socket, target: socket.socket, headers: bytes = b"", prefix: bytes = b"") -> None:
    with suppress(OSError):
        while data := source.recv(65536):
            if headers:
                data = re.sub(rb"(?i)\r\nhost: [^\r]*\r\n", headers, data)
                data = re.sub(rb"^([A-Z]+ )" + prefix, rb"\1", data)
            target.sendall(data)
    _shut_down(source, target)


def _shut_down(*sockets: socket.socket) -> None:
    for one in sockets:
        with suppress(OSError):
            one.shutdown(socket.SHUT_RDWR)
