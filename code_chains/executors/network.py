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
from contextlib import AsyncExitStack
from dataclasses import dataclass
from functools import partial

from code_chains.errors import ConfigurationError

__all__ = ["Destination", "Gate", "destinations", "hosts_file"]

CONNECTIONS = 64
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
        async with AsyncExitStack() as stack:
            free = asyncio.Semaphore(CONNECTIONS)
            tasks: set[asyncio.Task[None]] = set()
            stack.callback(lambda: [task.cancel() for task in tasks])
            for place, one in zip(sockets, self.allowed, strict=True):
                place.setblocking(False)
                carry = partial(self._carry, one, free, tasks)
                await stack.enter_async_context(await asyncio.start_server(carry, sock=place))
            await asyncio.Event().wait()

    async def _carry(
        self,
        one: Destination,
        free: asyncio.Semaphore,
        tasks: set[asyncio.Task[None]],
        reader: asyncio.StreamReader,
        writer: asyncio.StreamWriter,
    ) -> None:
        task = asyncio.current_task()
        assert task is not None
        tasks.add(task)
        ends = [writer]
        try:
            async with free:
                far_reader, far_writer = await asyncio.wait_for(asyncio.open_connection(one.host, one.port), 30)
                ends.append(far_writer)
                await asyncio.gather(_pump(reader, far_writer), _pump(far_reader, writer))
        except (OSError, TimeoutError):
            return
        finally:
            tasks.discard(task)
            for end in ends:
                end.close()

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


async def _pump(source: asyncio.StreamReader, target: asyncio.StreamWriter) -> None:
    with contextlib.suppress(OSError):
        while data := await source.read(1 << 16):
            target.write(data)
            await target.drain()
        target.write_eof()
