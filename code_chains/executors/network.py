"""The few addresses that a program may reach: connections leave the box through this process, and nothing else does.

In the box, each allowed name resolves to a loopback address of its own, where the watcher listens. The listening sockets
are handed out to this side, which accepts what the program connects to, and connects to the real host in its turn.
"""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import re
import socket
import threading
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial

from code_chains.errors import ConfigurationError

__all__ = ["Destination", "Gate", "destinations", "hosts_file"]

CONNECTIONS = 64
HALF_OPEN = 30.0
"""Seconds for which a connection that one side has ended may be silent."""
_NAME = re.compile(r"(?!-)[A-Za-z0-9-]{1,63}(?:\.[A-Za-z0-9-]{1,63})*")


@dataclass(frozen=True)
class Destination:
    """One address that may be reached.

    Attributes:
        host: Name or IPv4 address.
        port: TCP port.
        inside: IPv4 address by which it is reached in the box.
    """

    host: str
    port: int
    inside: str


def destinations(given: Iterable[str]) -> tuple[Destination, ...]:
    """Parse `["api.example.org:443", …]`.

    Raises:
        ConfigurationError: One is no host with a port.
    """
    if isinstance(given, str):
        raise ConfigurationError("network", given, 'a list of addresses, e.g. ["api.example.org:443"]')
    inside: dict[str, str] = {}
    found = []
    for address in given:
        host, _, port = str(address).rpartition(":")
        host = host.lower()
        if not _NAME.fullmatch(host) or not (port.isascii() and port.isdigit()) or not 0 < int(port) < 65536:
            raise ConfigurationError("network", address, 'hosts with their ports, e.g. ["api.example.org:443"]')
        if host not in inside:
            inside[host] = _literal(host) or f"127.0.77.{len(inside) + 1}"
        found.append(Destination(host, int(port), inside[host]))
    if len(inside) > 200:
        raise ConfigurationError("network", f"{len(inside)} hosts", "at most 200 hosts")
    return tuple(found)


def _literal(host: str) -> str | None:
    if host == "localhost":
        return "127.0.0.1"
    try:
        return str(ipaddress.IPv4Address(host))
    except ValueError:
        return None


def hosts_file(allowed: Iterable[Destination]) -> str:
    """What the box finds in `/etc/hosts`."""
    names = {one.host: one.inside for one in allowed if one.host not in ("localhost", one.inside)}
    return "".join(f"{inside} {host}\n" for host, inside in {"localhost": "127.0.0.1", **names}.items())


class Gate:
    """Carries what goes through listening sockets to the real destinations, in a thread of its own."""

    def __init__(self, allowed: tuple[Destination, ...]) -> None:
        self.allowed = allowed
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="code_chains-gate", daemon=True)
        self._thread.start()

    def open(self, listening: list[int]) -> Callable[[], object]:
        """Serve these listening sockets, one for each destination; returns what ends it."""
        future = asyncio.run_coroutine_threadsafe(
            self._serve([socket.socket(fileno=one) for one in listening]), self._loop
        )
        return future.cancel

    async def _serve(self, sockets: list[socket.socket]) -> None:
        """Until this is cancelled with the box: then its connections end as well."""
        free = asyncio.Semaphore(CONNECTIONS)
        async with asyncio.TaskGroup() as tasks:
            for place, one in zip(sockets, self.allowed, strict=True):
                accepting = tasks.create_task(_accept(place, one, free, tasks))
                accepting.add_done_callback(partial(_closed, place))

    def close(self) -> None:
        """End all connections."""
        asyncio.run_coroutine_threadsafe(_cancel_all(), self._loop).result(5)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(5)
        self._loop.close()


async def _cancel_all() -> None:
    tasks = asyncio.all_tasks() - {asyncio.current_task()}
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


def _closed(held: socket.socket, _: object) -> None:
    """A socket is closed with its task, even with one that was cancelled before it began."""
    held.close()


async def _accept(place: socket.socket, one: Destination, free: asyncio.Semaphore, tasks: asyncio.TaskGroup) -> None:
    place.setblocking(False)
    while True:
        await _readable(place)
        async with free:  # More connections than are free wait in the system's queue.
            pass
        try:
            near = place.accept()[0]
        except (BlockingIOError, ConnectionError):
            continue
        except OSError:  # This process has no descriptors left for now.
            await asyncio.sleep(1)
            continue
        tasks.create_task(_carry(near, one, free)).add_done_callback(partial(_closed, near))


async def _readable(place: socket.socket) -> None:
    loop, arrived = asyncio.get_running_loop(), asyncio.Event()
    loop.add_reader(place, arrived.set)
    try:
        await arrived.wait()
    finally:
        loop.remove_reader(place)


async def _carry(near: socket.socket, one: Destination, free: asyncio.Semaphore) -> None:
    near.setblocking(False)
    with contextlib.suppress(OSError):
        async with free:
            async with asyncio.timeout(30):
                far = await _connected(one)
            with far:
                await _joined(near, far)


async def _joined(near: socket.socket, far: socket.socket) -> None:
    """Both ways, until both have ended, one has broken, or one has ended and nothing moves on the other for long."""
    moved = asyncio.Event()
    ways = {asyncio.create_task(_pump(near, far, moved)), asyncio.create_task(_pump(far, near, moved))}
    try:
        ended, still = await asyncio.wait(ways, return_when=asyncio.FIRST_COMPLETED)
        while still and not any(way.exception() for way in ended):
            moved.clear()
            ended, still = await asyncio.wait(still, timeout=HALF_OPEN)
            if still and not moved.is_set():
                break
    finally:
        for way in ways:
            way.cancel()
        await asyncio.wait(ways)


async def _connected(one: Destination) -> socket.socket:
    """A connection to the first address of the host that answers."""
    loop = asyncio.get_running_loop()
    refused = OSError(f"{one.host} has no address")
    for family, kind, protocol, _, address in await loop.getaddrinfo(one.host, one.port, type=socket.SOCK_STREAM):
        far = socket.socket(family, kind, protocol)
        try:
            far.setblocking(False)
            await loop.sock_connect(far, address)
        except BaseException as error:
            far.close()
            if not isinstance(error, OSError):
                raise
            refused = error
        else:
            return far
    raise refused


async def _pump(source: socket.socket, target: socket.socket, moved: asyncio.Event) -> None:
    loop = asyncio.get_running_loop()
    while data := await loop.sock_recv(source, 1 << 16):
        moved.set()
        await loop.sock_sendall(target, data)
    target.shutdown(socket.SHUT_WR)
