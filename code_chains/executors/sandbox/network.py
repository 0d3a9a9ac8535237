"""The addresses that a program may connect to: connections leave the sandbox through this process, and only there.

In the sandbox, each allowed name resolves to a loopback address of its own, on which the supervisor listens.
It passes the listening sockets to this side, which accepts the program's connections and connects to the real
host.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import re
import socket
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any

from code_chains.errors import ConfigurationError
from code_chains.executors.sandbox.http_forwarding import (
    CHUNK_BYTES,
    INSIDE_PORT,
    RESERVED,
    forward_request,
    plain_name,
)

MAX_HOSTS = 200
MAX_CONNECTIONS = 64
CONNECT_TIMEOUT_S = 30.0
HALF_OPEN_TIMEOUT_S = 30.0
"""Seconds that a connection may be silent after one side has ended it."""
ACCEPT_RETRY_INTERVAL_S = 1.0
CLOSE_TIMEOUT_S = 5.0
_HEADER = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]{1,100}: [\x20-\x7e\xa0-\xff]{1,8000}")
_HOST_NAME = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})*")


@dataclass(frozen=True)
class Destination:
    """An address that programs may connect to.

    With headers it is an HTTPS service whose credentials no program sees: programs ask `http://HOST/…`, and their requests
    leave this process as HTTPS with these headers, to this host alone. What the service answers reaches the program as it
    is, so it must not repeat the headers.

    Args:
        host: Name or IPv4 address.
        port: TCP port.
        headers: Headers to add to requests, such as `{"Authorization": "Bearer …"}`; in no repr, log or checksum.
        inside: Its IPv4 address in the sandbox, which is chosen for it.

    Raises:
        ConfigurationError: It is no host with a port, or a header is none.
    """

    host: str
    port: int = 443
    headers: Mapping[str, str] = field(default_factory=dict, repr=False, hash=False)
    inside: str = ""

    def __post_init__(self) -> None:
        is_port = type(self.port) is int and 0 < self.port < 65536
        if not isinstance(self.host, str) or not _HOST_NAME.fullmatch(self.host) or not is_port:
            shown = f"{self.host}:{self.port}"
            raise ConfigurationError("network", shown, 'hosts with their ports, e.g. ["api.example.org:443"]')
        object.__setattr__(self, "headers", _checked_headers(self.headers))

    @property
    def fingerprint(self) -> list[Any]:
        """What distinguishes it from others; the values of headers do not."""
        return [self.host, self.port, *sorted(self.headers)]

    @property
    def inside_port(self) -> int:
        """The port that programs connect to."""
        return INSIDE_PORT if self.headers else self.port


def _checked_headers(headers: object) -> dict[str, str]:
    """Return a copy of valid headers; an error shows their names alone."""
    remedy = "texts without line breaks by their names, but for those about the connection"
    if not isinstance(headers, Mapping):
        raise ConfigurationError("headers", type(headers).__name__, remedy)
    names = Counter(plain_name(str(name)) for name in headers)
    are_valid = all(map(_is_header, headers, headers.values()))
    if not are_valid or RESERVED.intersection(names) or len(names) < len(headers):
        raise ConfigurationError("headers", [str(name)[:100] for name in headers], remedy)
    return dict(headers)


def _is_header(name: object, value: object) -> bool:
    texts = isinstance(name, str) and isinstance(value, str)
    return texts and bool(_HEADER.fullmatch(f"{name}: {value}"))


def destinations(addresses: Iterable[str | Destination]) -> tuple[Destination, ...]:
    """Parse `["api.example.org:443", Destination("api.example.com", headers=…)]`.

    Raises:
        ConfigurationError: An address is no host with a port.
    """
    if isinstance(addresses, str | Destination) or not isinstance(addresses, Iterable):
        raise ConfigurationError("network", addresses, 'a list of addresses, e.g. ["api.example.org:443"]')
    inside: dict[str, str] = {}
    parsed = []
    for address in addresses:
        destination = address if isinstance(address, Destination) else _parsed(str(address))
        host = destination.host.lower()
        if host not in inside:
            inside[host] = _literal(host) or f"127.0.77.{len(inside) + 1}"
        parsed.append(replace(destination, host=host, inside=inside[host]))
    if len(inside) > MAX_HOSTS:
        raise ConfigurationError("network", f"{len(inside)} hosts", f"at most {MAX_HOSTS} hosts")
    places = Counter((destination.inside, destination.inside_port) for destination in parsed)
    if places and max(places.values()) > 1:
        raise ConfigurationError("network", [*map(str, parsed)], "each host and port once")
    return tuple(parsed)


def _parsed(address: str) -> Destination:
    host, _, port = address.rpartition(":")
    return Destination(host, int(port) if port.isascii() and port.isdigit() else 0)


def _literal(host: str) -> str | None:
    if host == "localhost":
        return "127.0.0.1"
    try:
        return str(ipaddress.IPv4Address(host))
    except ValueError:
        return None


def hosts_file(allowed: Iterable[Destination]) -> str:
    """Return the content of the sandbox's `/etc/hosts`."""
    names = {"localhost": "127.0.0.1"}
    for destination in allowed:
        if destination.host not in ("localhost", destination.inside):
            names[destination.host] = destination.inside
    return "".join(f"{inside} {host}\n" for host, inside in names.items())


class EgressProxy:
    """Forwards connections from listening sockets to the real destinations, in a thread of its own.

    Args:
        allowed: The destinations, in the order of the sockets.
    """

    def __init__(self, allowed: tuple[Destination, ...]) -> None:
        self.allowed = allowed
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(
            target=self._loop.run_forever, name="code_chains-egress-proxy", daemon=True
        )
        self._thread.start()

    def open(self, listening: list[int]) -> Callable[[], object]:
        """Serve listening sockets by descriptor, one for each destination; return a function that ends this."""
        sockets = [socket.socket(fileno=descriptor) for descriptor in listening]
        return asyncio.run_coroutine_threadsafe(self._serve(sockets), self._loop).cancel

    async def _serve(self, sockets: list[socket.socket]) -> None:
        """Serve until this is cancelled when the sandbox ends, together with its connections."""
        slots = asyncio.Semaphore(MAX_CONNECTIONS)
        async with asyncio.TaskGroup() as tasks:
            for listener, destination in zip(sockets, self.allowed, strict=True):
                accepting = tasks.create_task(_accept(listener, destination, slots, tasks))
                accepting.add_done_callback(partial(_close, listener))

    def close(self) -> None:
        """End all connections."""
        asyncio.run_coroutine_threadsafe(_cancel_all(), self._loop).result(CLOSE_TIMEOUT_S)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CLOSE_TIMEOUT_S)
        self._loop.close()


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _close(owned: socket.socket, _: object) -> None:
    """Close a socket when its task is done, even if the task was cancelled before it started."""
    owned.close()


async def _accept(
    listener: socket.socket, destination: Destination, slots: asyncio.Semaphore, tasks: asyncio.TaskGroup
) -> None:
    listener.setblocking(False)
    while True:
        await _readable(listener)
        async with slots:  # Further connections wait in the kernel's queue.
            pass
        try:
            client = listener.accept()[0]
        except (BlockingIOError, ConnectionError):
            continue
        except OSError:  # This process is out of descriptors for now.
            await asyncio.sleep(ACCEPT_RETRY_INTERVAL_S)
            continue
        tasks.create_task(_forward(client, destination, slots)).add_done_callback(partial(_close, client))


async def _readable(listener: socket.socket) -> None:
    loop, is_readable = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(listener, is_readable.set)
    try:
        await is_readable.wait()
    finally:
        loop.remove_reader(listener)


async def _forward(client: socket.socket, destination: Destination, slots: asyncio.Semaphore) -> None:
    client.setblocking(False)
    with contextlib.suppress(OSError):
        async with slots:
            if destination.headers:
                await forward_request(client, destination.host, destination.port, destination.headers)
                return
            async with asyncio.timeout(CONNECT_TIMEOUT_S):
                server = await _connect(destination)
            with server:
                await _copy_both_ways(client, server)


async def _copy_both_ways(client: socket.socket, server: socket.socket) -> None:
    """Copy until both directions have ended, one has failed, or one has ended and the other is silent for too long."""
    has_data = asyncio.Event()
    directions = {
        asyncio.create_task(_copy(client, server, has_data)),
        asyncio.create_task(_copy(server, client, has_data)),
    }
    try:
        ended, active = await asyncio.wait(directions, return_when=asyncio.FIRST_COMPLETED)
        while active and not any(direction.exception() for direction in ended):
            has_data.clear()
            ended, active = await asyncio.wait(active, timeout=HALF_OPEN_TIMEOUT_S)
            if active and not has_data.is_set():
                break
    finally:
        for direction in directions:
            direction.cancel()
        await asyncio.wait(directions)


async def _connect(destination: Destination) -> socket.socket:
    """Return a connection to the first address of the host that accepts one."""
    loop, host = asyncio.get_running_loop(), destination.host
    failure = OSError(f"{host} has no address")
    for family, kind, protocol, _, address in await loop.getaddrinfo(
        host, destination.port, type=socket.SOCK_STREAM
    ):
        server = socket.socket(family, kind, protocol)
        try:
            server.setblocking(False)
            await loop.sock_connect(server, address)
        except BaseException as error:
            server.close()
            if not isinstance(error, OSError):
                raise
            failure = error
        else:
            return server
    raise failure


async def _copy(source: socket.socket, target: socket.socket, has_data: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    while data := await loop.sock_recv(source, CHUNK_BYTES):
        has_data.set()
        await loop.sock_sendall(target, data)
    target.shutdown(socket.SHUT_WR)
