"""The connections of a `SqliteStore`: bounded, shared by threads, and closed while the process forks."""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
import time
import weakref
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from code_chains.errors import StoreError
from code_chains.storage.sqlite_file import create, verify

MAX_CONNECTIONS = 8
"""Connections of one store in one process."""
MAX_CALL_S = 60.0
"""After this time, on top of the store's timeout, a call is interrupted; ours take milliseconds."""
CHECK_INTERVAL_STEPS = 100_000
"""Steps of SQLite's virtual machine between two checks of the deadline."""
MAX_VALUE_BYTES = 256 << 20
_LIMITS = {sqlite3.SQLITE_LIMIT_ATTACHED: 0, sqlite3.SQLITE_LIMIT_TRIGGER_DEPTH: 1}


class _Connection(sqlite3.Connection):
    """A connection to an untrusted file: the time and memory of a call are bounded, whatever the file holds."""

    def harden(self, call_s: float) -> None:
        """Set the limits.

        Args:
            call_s: Seconds after `begin_call` at which statements are interrupted.
        """
        self._call_s = call_s
        self.begin_call()
        self.execute("PRAGMA trusted_schema = OFF")
        self.execute("PRAGMA cell_size_check = ON")
        for limit, value in {**_LIMITS, sqlite3.SQLITE_LIMIT_LENGTH: MAX_VALUE_BYTES}.items():
            self.setlimit(limit, value)
        # A weak reference, as the connection owns the handler.
        reference = weakref.ref(self)

        def is_overdue() -> bool:
            connection = reference()
            return connection is not None and time.monotonic() > connection._deadline

        self.set_progress_handler(is_overdue, CHECK_INTERVAL_STEPS)

    def begin_call(self) -> None:
        """Start the time limit of a call."""
        self._deadline = time.monotonic() + self._call_s


def connect(path: Path, mode: str, timeout: float) -> _Connection:
    """Open a hardened connection.

    Args:
        path: The file.
        mode: "ro" or "rw", as in SQLite's URIs.
        timeout: Seconds to wait while others write.
    """
    connection = sqlite3.connect(
        f"{path.as_uri()}?mode={mode}",
        uri=True,
        timeout=timeout,
        isolation_level=None,
        check_same_thread=False,  # One thread at a time uses a connection, but not always the one that opened it.
        factory=_Connection,
    )
    connection.harden(timeout + MAX_CALL_S)
    return connection


class ConnectionPool:
    """The connections of one store: each is used by one thread at a time, and none is open while the process forks.

    SQLite keeps track in memory of the locks of its process, and a forked child inherits that memory without
    the locks: it would corrupt the file. So no connection may be inherited. Before a fork, the pool waits for
    running calls, closes all connections, and lets no thread open another until there are two processes.

    Args:
        path: The file.
        timeout: Seconds to wait while others write.

    Attributes:
        write_lock: Held by the thread that writes. Other writers wait here, and leave the connections to
            readers.
    """

    write_lock: threading.Lock

    def __init__(self, path: Path, timeout: float) -> None:
        self._path, self._timeout = path, timeout
        self._idle: list[_Connection] = []
        self.reset()
        weakref.finalize(self, _close_all, self._idle)
        _pools.add(self)

    def reset(self) -> None:
        """Forget the threads that wait or work; a forked child has none of them."""
        self.write_lock = threading.Lock()
        self._slots = threading.Semaphore(MAX_CONNECTIONS)

    @contextmanager
    def connection(self) -> Iterator[sqlite3.Connection]:
        """Borrow a connection. After an exception it is closed, which rolls back its transaction."""
        with self._slots:
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = self._open()
            connection.begin_call()
            try:
                yield connection
            except BaseException:
                connection.close()
                raise
            self._idle.append(connection)

    def pause(self) -> None:
        """Wait for running calls, close all connections, and open none until `resume`."""
        for _ in range(MAX_CONNECTIONS):
            self._slots.acquire()
        _close_all(self._idle)

    def resume(self) -> None:
        """Let threads open connections again."""
        self._slots.release(MAX_CONNECTIONS)

    def close(self) -> None:
        """Close all connections once their calls have finished."""
        with _pause_lock:
            self.pause()
            self.resume()

    def _open(self) -> _Connection:
        create(self._path)  # It may have been deleted since the last connection.
        if os.path.lexists(
            f"{self._path}-journal"
        ):  # SQLite would replay it, and delete the file that it names.
            raise StoreError(
                f"The store {self._path} is not used: the journal beside it belongs to another database. Delete the journal."
            )
        connection = connect(self._path, "rw", self._timeout)
        try:
            verify(self._path, connection)  # It may have been replaced, too.
            connection.execute("PRAGMA synchronous = NORMAL")
        except BaseException:
            connection.close()
            raise
        return connection


_pools: weakref.WeakSet[ConnectionPool] = weakref.WeakSet()
_pause_lock = threading.Lock()
"""Held while pools are paused: two threads that pause the same pool, slot by slot, would deadlock."""
_paused: list[ConnectionPool] = []


def _close_all(connections: list[_Connection]) -> None:
    while connections:
        connections.pop().close()


def _before_fork() -> None:
    _pause_lock.acquire()
    _paused.extend(_pools)
    for pool in _paused:
        pool.pause()


def _after_fork() -> None:
    while _paused:
        _paused.pop().resume()
    _pause_lock.release()


def _after_fork_in_child() -> None:
    for pool in _paused:
        pool.reset()
    _paused.clear()
    _pause_lock.release()


if sys.platform != "win32":
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
