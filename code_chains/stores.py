"""Bytes under keys, in one SQLite file that threads and processes share.

It is one of LangChain's stores (`ByteStore`), so that another of them can take its place, and the other way round.
"""

from __future__ import annotations

import fcntl
import os
import secrets
import sqlite3
import tempfile
import threading
import time
import weakref
from collections.abc import AsyncIterator, Callable, Iterator, Sequence
from contextlib import closing, contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import TracebackType
from typing import Self

from langchain_core.runnables import run_in_executor
from langchain_core.stores import BaseStore

from code_chains.errors import ConfigurationError, InputError, StoreError

__all__ = ["SqliteStore", "StoreStats"]

_APPLICATION = int.from_bytes(b"cchn")
"""What a file of ours says in its header; `file` and SQLite know it as the application id."""
_VERSION = 1
_SCHEMA = f"""
PRAGMA auto_vacuum = INCREMENTAL;
PRAGMA journal_mode = WAL;
BEGIN;
CREATE TABLE entries (
    id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE,
    size INTEGER NOT NULL, expires REAL, used REAL NOT NULL, value BLOB NOT NULL
);
CREATE INDEX entries_by_use ON entries (used);
CREATE INDEX entries_by_end ON entries (expires) WHERE expires IS NOT NULL;
CREATE TABLE total (bytes INTEGER NOT NULL);
INSERT INTO total VALUES (0);
CREATE TRIGGER added AFTER INSERT ON entries BEGIN UPDATE total SET bytes = bytes + new.size; END;
CREATE TRIGGER removed AFTER DELETE ON entries BEGIN UPDATE total SET bytes = bytes - old.size; END;
CREATE TRIGGER resized AFTER UPDATE OF size ON entries BEGIN UPDATE total SET bytes = bytes - old.size + new.size; END;
CREATE TABLE leases (key TEXT PRIMARY KEY, token TEXT NOT NULL, expires REAL NOT NULL);
PRAGMA application_id = {_APPLICATION};
PRAGMA user_version = {_VERSION};
COMMIT;
"""  # noqa: S608 - made of constants
# A use is later than all before it, also where two come at once or the clock is set back: the order is exact.
_NOW = "max(?, (SELECT coalesce(max(used), 0) + 1e-6 FROM entries))"
_GET = "SELECT value, used FROM entries WHERE key = ? AND (expires IS NULL OR expires > ?)"
_PUT = f"""
INSERT INTO entries (key, value, size, expires, used) VALUES (?, ?, ?, ?, {_NOW}) ON CONFLICT (key)
DO UPDATE SET value = excluded.value, size = excluded.size, expires = excluded.expires, used = excluded.used
"""  # noqa: S608
_USE = f"UPDATE entries SET used = {_NOW} WHERE key = ?"  # noqa: S608
_EXPIRE = "DELETE FROM entries WHERE expires <= ?"
# Keys are compared as their bytes, in order: those below a prefix lie together, whatever signs it holds.
_BELOW = "key >= CAST(? AS TEXT) AND key < CAST(? AS TEXT)"
_KEYS = f"SELECT key FROM entries WHERE {_BELOW} AND (expires IS NULL OR expires > ?) ORDER BY key LIMIT ?"  # noqa: S608
_CLEAR = f"DELETE FROM entries WHERE {_BELOW}"  # noqa: S608
_STATS = """
SELECT count(*) - count(gone), coalesce(sum(size), 0) - coalesce(sum(gone), 0), count(gone)
FROM (SELECT size, CASE WHEN expires <= ? THEN size END AS gone FROM entries)
"""

_PAGE = 1000
"""Keys that are read at once."""
_REST = 1.0
"""Seconds in which further reads of an entry are not noted as uses."""
_MOST = 8
"""Connections of one store in one process."""

_MOVE = "Choose another path, or move the file away; a new one is made in its place."
_WRITABLE = "Make the file and its folder writable, or choose another path."
_ADVICE = {
    sqlite3.SQLITE_BUSY: "Somebody else has kept it locked for longer than its timeout; try again, or raise timeout=.",
    sqlite3.SQLITE_CANTOPEN: _WRITABLE,
    sqlite3.SQLITE_CORRUPT: _MOVE,
    sqlite3.SQLITE_FULL: "Make room on its disk.",
    sqlite3.SQLITE_IOERR: "See whether its disk is full or broken.",
    sqlite3.SQLITE_NOTADB: _MOVE,
    sqlite3.SQLITE_READONLY: _WRITABLE,
}


@dataclass(frozen=True)
class StoreStats:
    """What a store holds.

    Attributes:
        entries: How many can be read.
        bytes: What their values take, together.
        expired: How many more there are whose time is over; the next write removes them.
    """

    entries: int
    bytes: int
    expired: int


class SqliteStore(BaseStore[str, bytes]):
    """Bytes under keys, in one file. Any number of threads and processes may use it at once.

    What a method has written is there for all others once it returns. It outlives the process however that ends; a
    loss of power may take the last moments with it, and never more. The async methods wait in threads. A child that a
    fork makes opens connections of its own.

    Args:
        path: The file; it and its folders are made, for their owner alone.
        ttl: Seconds that entries written by this store live; None is for ever.
        max_bytes: What all values may take together. The least recently used go first; a read counts as a use about
            once in a second. A value that is larger than this by itself is not stored, nor kept is what was there
            under its key.
        timeout: Seconds to wait while others write.

    Raises:
        ConfigurationError: An argument does not work.
        StoreError: The file cannot be made or written, or is none of ours. Nothing of it is changed.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        ttl: float | None = None,
        max_bytes: int | None = None,
        timeout: float = 10.0,
    ) -> None:
        if max_bytes is not None and (type(max_bytes) is not int or max_bytes < 1):
            raise ConfigurationError("max_bytes", max_bytes, "a whole number of bytes, at least 1, or None")
        self.path = _absolute(path)
        self.ttl = None if ttl is None else _seconds("ttl", ttl)
        self.max_bytes = max_bytes
        self.timeout = _seconds("timeout", timeout)
        self._connections = _Connections(self._open)
        with self._errors():
            _create(self.path)
            # A reader finds out whose it is: it can neither change the file nor tidy up after whoever does.
            with closing(self._connect("ro")) as connection:
                _verify(self.path, connection)

    # -- what LangChain promises of a store -------------------------------------------------------------------------------

    def mget(self, keys: Sequence[str]) -> list[bytes | None]:
        """The values under some keys, as they were at one moment; None where there is none."""
        wanted, now = _keys(keys), time.time()
        with self._reading() as connection:
            rows = [connection.execute(_GET, (key, now)).fetchone() for key in wanted]
        if self.max_bytes is not None:
            self._note_use([key for key, row in zip(wanted, rows, strict=True) if row and row[1] <= now - _REST])
        return [row[0] if row else None for row in rows]

    def mset(self, key_value_pairs: Sequence[tuple[str, bytes]]) -> None:
        """Write all pairs or, if it raises, none of them."""
        pairs = [(_key(key), _value(key, value)) for key, value in key_value_pairs]
        if not pairs:
            return
        with self._writing() as connection:
            now = time.time()
            expires = None if self.ttl is None else now + self.ttl
            connection.execute(_EXPIRE, (now,))
            for key, value in pairs:
                if self.max_bytes is not None and len(value) > self.max_bytes:
                    connection.execute("DELETE FROM entries WHERE key = ?", (key,))
                else:
                    connection.execute(_PUT, (key, value, len(value), expires, now))
            if self.max_bytes is not None:
                _make_room(connection, self.max_bytes)

    def mdelete(self, keys: Sequence[str]) -> None:
        """Remove what is under some keys; a key without anything is fine."""
        if unwanted := _keys(keys):
            with self._writing() as connection:
                connection.executemany("DELETE FROM entries WHERE key = ?", [(key,) for key in unwanted])

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """The keys that begin with a prefix, in order. Nothing is locked while they are gone through."""
        start, end = _range(prefix)
        while page := self._page(start, end):
            yield from page
            start = page[-1].encode() + b"\0"

    async def ayield_keys(self, *, prefix: str | None = None) -> AsyncIterator[str]:
        """The same, for event loops."""
        start, end = _range(prefix)
        while page := await run_in_executor(None, self._page, start, end):
            for key in page:
                yield key
            start = page[-1].encode() + b"\0"

    # -- leases -----------------------------------------------------------------------------------------------------------

    def lease(self, key: str, seconds: float) -> str | None:
        """Take a name for oneself, so that one of many does what all of them need. Names of leases are no keys of entries.

        Args:
            key: The name.
            seconds: After which others may take it, whether it was given back or not.

        Returns:
            A token to give it back with; None where somebody else has it.
        """
        name, lasting, token = _key(key), _seconds("seconds", seconds), secrets.token_hex(16)
        with self._writing() as connection:
            now = time.time()
            connection.execute("DELETE FROM leases WHERE expires <= ?", (now,))
            taken = connection.execute("INSERT OR IGNORE INTO leases VALUES (?, ?, ?)", (name, token, now + lasting))
        return token if taken.rowcount else None

    def release(self, key: str, token: str) -> None:
        """Give a lease back; nothing happens where it has gone to somebody else meanwhile."""
        with self._writing() as connection:
            connection.execute("DELETE FROM leases WHERE key = ? AND token = ?", (_key(key), token))

    def renew(self, key: str, token: str, seconds: float) -> bool:
        """Have a lease last for longer from now on; False where it has gone to somebody else meanwhile."""
        name, lasting = _key(key), _seconds("seconds", seconds)
        with self._writing() as connection:
            values = (time.time() + lasting, name, token)
            return bool(
                connection.execute("UPDATE leases SET expires = ? WHERE key = ? AND token = ?", values).rowcount
            )

    async def alease(self, key: str, seconds: float) -> str | None:
        """The same as `lease`, for event loops."""
        return await run_in_executor(None, self.lease, key, seconds)

    async def arelease(self, key: str, token: str) -> None:
        """The same as `release`, for event loops."""
        await run_in_executor(None, self.release, key, token)

    # -- housekeeping -----------------------------------------------------------------------------------------------------

    def stats(self) -> StoreStats:
        """What it holds; counted, so it takes longer the more there is."""
        with self._reading() as connection:
            return StoreStats(*connection.execute(_STATS, (time.time(),)).fetchone())

    def clear(self, prefix: str = "") -> int:
        """Remove all entries whose keys begin with a prefix, and give their room back to the disk; how many they were."""
        with self._writing() as connection:
            connection.execute(_EXPIRE, (time.time(),))
            removed = connection.execute(_CLEAR, _range(prefix)).rowcount
            connection.executescript("PRAGMA incremental_vacuum")  # This commits first.
        return removed

    def close(self) -> None:
        """Close the connections, once what runs on them is done. Whoever uses the store afterwards opens new ones."""
        self._connections.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    # -- the file ---------------------------------------------------------------------------------------------------------

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._errors(), self._connections.one() as connection:
            connection.execute("BEGIN")
            yield connection
            connection.commit()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._errors(), self._connections.writing, self._connections.one() as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.commit()

    def _note_use(self, keys: list[str]) -> None:
        """Note that entries were read, unless anybody is writing: a read waits for nobody."""
        writing = self._connections.writing
        if not keys or not writing.acquire(blocking=False):
            return
        try:
            with self._errors(), self._connections.one() as connection:
                connection.execute("PRAGMA busy_timeout = 0")
                with suppress(sqlite3.OperationalError):
                    connection.execute("BEGIN IMMEDIATE")
                    connection.executemany(_USE, [(time.time(), key) for key in keys])
                    connection.commit()
                connection.rollback()
                connection.execute(f"PRAGMA busy_timeout = {int(self.timeout * 1000)}")
        finally:
            writing.release()

    def _page(self, start: bytes, end: bytes) -> list[str]:
        with self._reading() as connection:
            return [key for (key,) in connection.execute(_KEYS, (start, end, time.time(), _PAGE))]

    def _open(self) -> sqlite3.Connection:
        _create(self.path)  # It may have been deleted meanwhile.
        connection = self._connect("rw")
        connection.execute("PRAGMA synchronous = NORMAL")
        return connection

    def _connect(self, mode: str) -> sqlite3.Connection:
        address = f"{self.path.as_uri()}?mode={mode}"
        # One thread at a time uses a connection, but not always the one that opened it.
        return sqlite3.connect(address, uri=True, timeout=self.timeout, isolation_level=None, check_same_thread=False)

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Say which file it is and what to do."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            raise StoreError(
                f"The store {self.path} cannot be used: {error}. {_ADVICE.get(code, '')}".rstrip(),
                is_retryable=code == sqlite3.SQLITE_BUSY,
            ) from error
        except OSError as error:
            raise StoreError(f"The store {self.path} cannot be made: {error}. {_WRITABLE}") from error


class _Connections:
    """The connections of one store: each is used by one thread at a time, and none is open while the process forks.

    SQLite knows which locks a process holds by what it remembers of them, and a fork inherits the memory without the
    locks. So there is nothing to inherit: who forks waits for running calls, closes all connections, and keeps others
    from opening new ones until there are two processes.

    Attributes:
        writing: Held by the thread that writes; the others wait here, in turn, and leave the connections to readers.
    """

    def __init__(self, opened: Callable[[], sqlite3.Connection]) -> None:
        self._opened = opened
        self._idle: list[sqlite3.Connection] = []
        self.renew()
        weakref.finalize(self, _close_all, self._idle)
        _EVERY.add(self)

    def renew(self) -> None:
        """Forget about threads that are waiting or at work."""
        self.writing = threading.Lock()
        self._places = threading.Semaphore(_MOST)

    @contextmanager
    def one(self) -> Iterator[sqlite3.Connection]:
        """A connection for a moment. One that something goes wrong with is closed, and with it what it had begun."""
        with self._places:
            try:
                connection = self._idle.pop()
            except IndexError:
                connection = self._opened()
            try:
                yield connection
            except BaseException:
                connection.close()
                raise
            self._idle.append(connection)

    def hold(self) -> None:
        """Wait until nothing runs, close all, and keep it so until `go_on`."""
        for _ in range(_MOST):
            self._places.acquire()
        _close_all(self._idle)

    def go_on(self) -> None:
        """Let the others open new ones."""
        self._places.release(_MOST)

    def close(self) -> None:
        """Close all."""
        with _HOLDING:
            self.hold()
            self.go_on()


_EVERY: weakref.WeakSet[_Connections] = weakref.WeakSet()
_HOLDING = threading.Lock()
"""Held by who holds connections: two at once would wait for each other."""
_held: list[_Connections] = []


def _close_all(connections: list[sqlite3.Connection]) -> None:
    while connections:
        connections.pop().close()


def _before_fork() -> None:
    _HOLDING.acquire()
    _held.extend(_EVERY)
    for connections in _held:
        connections.hold()


def _after_fork() -> None:
    while _held:
        _held.pop().go_on()
    _HOLDING.release()


def _after_fork_in_child() -> None:
    for connections in _held:
        connections.renew()
    _held.clear()
    _HOLDING.release()


os.register_at_fork(before=_before_fork, after_in_parent=_after_fork, after_in_child=_after_fork_in_child)


def _make_room(connection: sqlite3.Connection, most: int) -> None:
    """Remove what was not used for longest until the rest fits."""
    excess = connection.execute("SELECT bytes FROM total").fetchone()[0] - most
    removed = []
    for identity, size in connection.execute("SELECT id, size FROM entries ORDER BY used, id") if excess > 0 else ():
        removed.append((identity,))
        excess -= size
        if excess <= 0:
            break
    connection.executemany("DELETE FROM entries WHERE id = ?", removed)


def _is_there(path: Path) -> bool:
    """Whether there is anything in a file; an empty one is as good as none."""
    if path.is_dir():
        raise IsADirectoryError("it is a folder")
    try:
        return path.stat().st_size > 0
    except FileNotFoundError:
        return False


def _create(path: Path) -> None:
    """Make a new file beside its place and move it there when it is whole, unless there is one."""
    if _is_there(path):
        return
    for folder in reversed([path.parent, *path.parent.parents]):
        folder.mkdir(mode=0o700, exist_ok=True)
    with _alone(path.parent):
        if _is_there(path):  # Another process was faster.
            return
        for ending in ("-wal", "-shm", "-journal"):  # Left of a file that was deleted, they would be taken for ours.
            path.with_name(path.name + ending).unlink(missing_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as aside:
            fresh = Path(aside) / "store"
            with closing(sqlite3.connect(fresh)) as connection:
                connection.executescript(_SCHEMA)
            fresh.chmod(0o600)
            fresh.rename(path)


@contextmanager
def _alone(folder: Path) -> Iterator[None]:
    """Be the only process that makes files in a folder."""
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def _verify(path: Path, connection: sqlite3.Connection) -> None:
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != _APPLICATION:
        raise StoreError(f"The file {path} is a database of something else. {_MOVE}")
    if version != _VERSION:
        raise StoreError(
            f"The store {path} has format {version}; this version of code_chains knows format {_VERSION}."
            f" Upgrade code_chains, or choose another path."
        )


def _absolute(path: str | os.PathLike[str]) -> Path:
    """The path of a file, whatever the current folder will be."""
    if not isinstance(path, str | os.PathLike) or str(path) in ("", ":memory:") or "\0" in str(path):
        raise ConfigurationError(
            "path", path, "the path of a file; for a store in memory there is langchain_core.stores.InMemoryByteStore"
        )
    return Path(path).expanduser().absolute()


def _seconds(argument: str, given: float) -> float:
    if isinstance(given, bool) or not isinstance(given, int | float) or not 0 < given < 1e9:
        raise ConfigurationError(argument, given, "a number of seconds above 0")
    return float(given)


def _keys(keys: Sequence[str]) -> list[str]:
    if isinstance(keys, str):
        raise InputError(f"A list of keys is needed, not one key. Pass [{keys!r}].")
    return [_key(key) for key in keys]


def _key(key: object) -> str:
    if not isinstance(key, str):
        raise InputError(f"A key must be a str, not {type(key).__name__}.")
    try:
        key.encode()
    except UnicodeEncodeError as error:
        raise InputError(f"The key {key!r} holds characters that are no text (broken UTF-8).") from error
    return key


def _value(key: str, value: object) -> bytes:
    if not isinstance(value, bytes):
        raise InputError(f"The value of {key!r} must be bytes, not {type(value).__name__}. Encode it, e.g. as JSON.")
    return value


def _range(prefix: str | None) -> tuple[bytes, bytes]:
    """Where keys with a prefix begin, and where they have ended; no byte of UTF-8 is the highest there is."""
    start = _key(prefix or "").encode()
    return start, start[:-1] + bytes([start[-1] + 1]) if start else b"\xff"
