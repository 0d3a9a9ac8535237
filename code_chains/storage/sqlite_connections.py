"""The connections of a `SqliteStore`: threads take turns, and none is open while the process forks."""

from __future__ import annotations

import os
import sqlite3
import sys
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from code_chains.storage.sqlite_file import create, verify


def connect(path: Path, mode: str, timeout: float) -> sqlite3.Connection:
    """Open a connection.

    Args:
        path: The file.
        mode: "ro" or "rw", as in SQLite's URIs.
        timeout: Seconds to wait while others write.
    """
    return sqlite3.connect(
        f"{path.as_uri()}?mode={mode}",
        uri=True,
        timeout=timeout,
        isolation_level=None,
        check_same_thread=False,  # One thread at a time uses a connection, but not always the one that opened it.
    )


def open_store(path: Path, timeout: float) -> sqlite3.Connection:
    """Open a store, which is created if there is no file: it may have been deleted or replaced at any time.

    Raises:
        OSError: The file cannot be created.
        sqlite3.Error: It cannot be read.
        StoreError: It is not a store.
    """
    create(path)
    # Verified read-only: a file of another program is neither changed nor recovered from its journal.
    with closing(connect(path, "ro", timeout)) as connection:
        verify(path, connection)
    connection = connect(path, "rw", timeout)
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


class SharedConnection:
    """A connection that one thread at a time uses. It is opened on use, and closed while the process forks.

    SQLite keeps track in memory of the locks of its process, and a forked child inherits that memory without
    the locks: beside an inherited connection, new ones of the child would lose data. So no connection may be
    inherited: a fork waits for running calls, closes all connections, and lets no thread open another until
    there are two processes.

    Args:
        open_connection: Opens it.
    """

    def __init__(self, open_connection: Callable[[], sqlite3.Connection]) -> None:
        self._open_connection = open_connection
        self._open: list[sqlite3.Connection] = []  # One at most.
        self.lock = threading.Lock()
        weakref.finalize(self, _close, self._open)
        with _forking:
            _shared.add(self)

    @contextmanager
    def use(self) -> Iterator[sqlite3.Connection]:
        """Borrow the connection. After an exception it is closed, which rolls back its transaction."""
        with self.lock:
            if not self._open:
                self._open.append(self._open_connection())
            try:
                yield self._open[0]
            except BaseException:
                _close(self._open)
                raise

    def pause(self) -> None:
        """Wait for a running call, close the connection, and let nobody use it until the lock is released."""
        self.lock.acquire()
        _close(self._open)

    def close(self) -> None:
        """Close the connection once a running call has finished. The next call opens a new one."""
        self.pause()
        self.lock.release()


_shared: weakref.WeakSet[SharedConnection] = weakref.WeakSet()
_forking = threading.Lock()
"""Held during a fork; no other thread may fork or add a connection then."""


def _close(connections: list[sqlite3.Connection]) -> None:
    while connections:
        connections.pop().close()


def _before_fork() -> None:
    _forking.acquire()
    for shared in _shared:
        shared.pause()


def _after_fork() -> None:
    for shared in _shared:
        shared.lock.release()
    _forking.release()


def _after_fork_in_child() -> None:
    global _forking
    for shared in _shared:
        shared.lock = threading.Lock()  # No thread waits for it here.
    _forking = threading.Lock()


if sys.platform != "win32":
    os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)
