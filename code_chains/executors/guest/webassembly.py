"""Runs programs in WebAssembly: what is called there for each of them, and how it speaks with the worker around it.

Whatever leaves is one message on eryx's stream of errors, which programs do not use. What comes in are files of a folder
that cannot be written here; there is no call that waits, so whoever waits looks.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import os
import random
import sys
import time
import zipfile
import zlib
import zoneinfo
from collections.abc import Callable
from typing import Any

from . import cell, collection, roles, rpc, serialization, tools, wire
from .wire import Json

HOST, WORKDIR, TEMPORARY, ZONES = "/host", "/tmp/work", "/tmp", "/zones"
FILE, OUTCOME, TOOL, PEER, NEXT = b"f", b"o", b"t", b"p", b"n"
"""The kinds of messages: a file that was made, how a program ended, a call of a tool, what tests and their program say to
each other, and that the next message may come."""
ERRORS = 1
DESCRIPTORS = (1 << 20, (1 << 20) + 1)
"""Numbers of no file, where descriptors are expected."""
PATIENCE_S, PAUSE_S = 0.005, 0.001
CHUNK_BYTES = 1 << 20
ENVIRONMENT = {"HOME": WORKDIR, "PWD": WORKDIR, "TMPDIR": TEMPORARY, "PYTHONUTF8": "1"}


class Port:
    """The connection to the worker."""

    def __init__(self) -> None:
        import _eryx  # It is there alone.

        self._number, self._unread = 0, b""
        # Invariant: bound before any program can replace them.
        self._report: Callable[[int, bytes], None] = _eryx._eryx_report_output
        self._open, self._sleep, self._clock = open, time.sleep, time.monotonic

    def send(self, kind: bytes, data: bytes = b"") -> None:
        """Send a message."""
        self._report(ERRORS, kind + data)

    def receive(self) -> bytes:
        """Return the next message; wait for it."""
        self.send(NEXT)
        self._number += 1
        path, patience = f"{HOST}/reply-{self._number}", self._clock() + PATIENCE_S
        while True:
            try:
                with self._open(path, "rb") as file:
                    return file.read()
            except OSError:
                if self._clock() > patience:
                    self._sleep(PAUSE_S)

    def read(self, descriptor: int, size: int) -> bytes:
        """Return some bytes of what is received, as `os.read` does."""
        self._unread = self._unread or self.receive()
        data, self._unread = self._unread[:size], self._unread[size:]
        return data

    def writer(self, kind: bytes) -> wire.Write:
        """Return what sends bytes as `os.write` does."""

        def write(descriptor: int, data: bytes) -> int:
            self.send(kind, bytes(data))
            return len(data)

        return write


class SleepingLoop(asyncio.base_events.BaseEventLoop):
    """An event loop where there are neither descriptors nor threads: it sleeps until the next timer, and calls at once."""

    def __init__(self) -> None:
        super().__init__()
        self._selector = self

    def select(self, timeout: float | None) -> list[Any]:
        """Wait for as long as nothing is due."""
        if timeout is None:
            raise RuntimeError(
                "Nothing can wake this event loop any more: all its tasks wait for each other."
            )
        time.sleep(timeout)
        return []

    def run_in_executor(self, executor: Any, func: Any, *args: Any) -> Any:  # type: ignore[override]
        """Call a function at once."""
        future = self.create_future()
        try:
            future.set_result(func(*args))
        except Exception as error:
            future.set_exception(error)
        return future

    def _process_events(self, event_list: list[Any]) -> None:
        """Do nothing: there are no events."""

    def _write_to_self(self) -> None:
        """Do nothing: nobody else could wake it."""


class Guest:
    """Runs programs, each with the state that the last one left.

    It is made before Python is compiled, so that each copy of it begins with all its modules.
    """

    def __init__(self) -> None:
        self._port, self._names = Port(), dict[str, Any]()
        self._known: dict[str, tuple[int, int]] = {}
        self._folder = WORKDIR
        self._main: Any = None
        for place in (asyncio, asyncio.events):
            vars(place)["new_event_loop"] = vars(place)["SelectorEventLoop"] = SleepingLoop
        # Files have no times, which is before those that archives can hold.
        defaults: Any = zipfile.ZipFile.__init__.__kwdefaults__
        defaults["strict_timestamps"] = False
        cell.STATUS_BY_ERRNO[errno.EIO] = "disk_limit"  # That is what a full file system in memory says.
        cell.hide(cell.own_modules())

    def start(self, seed: str) -> None:
        """Prepare for programs; each copy of this Python has a seed of its own."""
        os.makedirs(WORKDIR)
        os.chdir(WORKDIR)
        for name in [*os.environ]:
            del os.environ[name]
        os.environ |= ENVIRONMENT
        sys.argv, sys.path[:] = [""], ["", *sys.path]
        sys.dont_write_bytecode = True  # It would be among the files of the program.
        zoneinfo.reset_tzpath([ZONES])
        source = random.Random(seed)  # noqa: S311 - a session that is built anew must see the same
        os.urandom = source.randbytes
        vars(random)["_urandom"] = source.randbytes
        random.seed(source.random())
        own = sys.modules["__main__"]
        self._names = cell.new_main()
        self._main, sys.modules["__main__"] = sys.modules["__main__"], own

    def probe(self, source: str) -> None:
        """Run source of the host."""
        cell.set_streams()
        exec(source, {})  # noqa: S102 - it is ours

    def run(self, number: int) -> None:
        """Run the program in a file of the host, and send its outcome."""
        own, sys.modules["__main__"] = sys.modules["__main__"], self._main
        asyncio._set_running_loop(None)  # Eryx has one running.
        cell.set_streams()
        try:
            with open(f"{HOST}/request-{number}", "rb") as file:
                request: Json = wire.decode(file.read().decode())
            os.chdir(self._folder)
            outcome = self._outcome(request)
            with contextlib.suppress(OSError):
                self._folder = os.getcwd()
            for made in collection.made_files(WORKDIR, self._is_known, request["artifacts"]):
                self._port.send(FILE, wire.encode(made).encode())
            self._port.send(OUTCOME, wire.outcome_frame(outcome))
        finally:
            self._main, sys.modules["__main__"] = sys.modules["__main__"], own

    def _outcome(self, request: Json) -> Json:
        self._copy(request["files"])
        self._names |= serialization.unpack_all(request["variables"])
        port, given = self._port, request["tools"]
        described = given and {**given, "descriptors": DESCRIPTORS}
        self._names |= tools.connect(described, port.read, port.writer(TOOL))
        cell.set_input(request["stdin"])
        is_tested = request["is_harness"] or request["is_tested"]
        channel = rpc.RpcChannel(*DESCRIPTORS, port.read, port.writer(PEER)) if is_tested else None
        name = f"<code-{request['number']}>" if request["is_session"] else cell.SOURCE_NAME
        views, ends = request["artifacts"], not request["is_session"]
        outcome = roles.run(request, self._names, channel, source=name, ends=ends, max_view_bytes=views)
        tools.disconnect()
        return outcome

    def _copy(self, files: Json) -> None:
        """Copy files of the host, by their names."""
        for name, place in files.items():
            target = os.path.join(WORKDIR, name)
            os.makedirs(os.path.dirname(target), exist_ok=True)
            with open(f"{HOST}/{place}", "rb") as source, open(target, "wb") as copy:
                while data := source.read(CHUNK_BYTES):
                    copy.write(data)
            self._known[name] = (os.path.getsize(target), checksum(target))

    def _is_known(self, name: str, status: os.stat_result) -> bool:
        """Return whether a file is as it was given or last seen; from here on it is known."""
        path = os.path.join(WORKDIR, name)
        known, self._known[name] = self._known.get(name), (status.st_size, checksum(path))
        return known == self._known[name]


def checksum(path: str) -> int:
    """Return what most likely changes with a file. Its time does not: there is none in this file system."""
    total = 0
    with open(path, "rb") as file:
        while data := file.read(CHUNK_BYTES):
            total = zlib.crc32(data, total)
    return total
