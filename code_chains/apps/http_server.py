"""What the servers over HTTP share: the address that they listen on, and graceful shutdown."""

from __future__ import annotations

import ipaddress
import signal
import socket
from collections.abc import Callable
from types import FrameType

import uvicorn

from code_chains.apps.shutdown import drain_then
from code_chains.assembly.code_chain import CodeChain
from code_chains.errors import ConfigurationError


def is_loopback(host: str) -> bool:
    """Return whether a host name or address is a loopback one.

    Example:
        >>> [is_loopback(host) for host in ("127.0.0.1", "localhost", "::1", "192.168.1.5", "example.org", "")]
        [True, True, True, False, False, False]
    """
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def is_wildcard(host: str) -> bool:
    """Return whether a server that listens on a host listens on all addresses."""
    return host in ("0.0.0.0", "::", "")  # noqa: S104 (compared, not bound)


def url_name(host: str) -> str:
    """Return the name in URLs by which others reach a server that listens on a host."""
    name = socket.gethostname() if is_wildcard(host) else host
    return f"[{name}]" if ":" in name else name


def listen(host: str, port: int) -> socket.socket:
    """Return a socket that listens on an address.

    Raises:
        ConfigurationError: The address is not available.
    """
    try:
        family = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0][0]
        return socket.create_server((host, port), family=family)
    except (OSError, OverflowError, UnicodeError) as error:
        remedy = "another port, e.g. --port 0 for a free one, or an address of this machine"
        reason = getattr(error, "strerror", None) or str(error)
        raise ConfigurationError(
            "address", f"{host}:{port}", remedy, because=reason.partition(" (")[0]
        ) from error


class GracefulServer(uvicorn.Server):
    """A server that shuts down gracefully on SIGTERM: it finishes running questions.

    A second signal ends it at once.

    Args:
        config: What is served.
        chain: What answers; None for nothing that has to finish.
        on_shutdown: Called at its end, before the requests that are left are waited for.
    """

    def __init__(
        self, config: uvicorn.Config, chain: CodeChain | None, on_shutdown: Callable[[], None] = lambda: None
    ) -> None:
        super().__init__(config)
        self._chain, self._on_shutdown, self._is_draining = chain, on_shutdown, False

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """End the requests that are left."""
        self._on_shutdown()
        await super().shutdown(sockets)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Start to shut down."""
        if sig != signal.SIGTERM or self._is_draining or self._chain is None:
            super().handle_exit(sig, frame)
            return
        self._is_draining = True
        drain_then(self._chain, lambda: super(GracefulServer, self).handle_exit(sig, frame))
