"""A key-value store in one SQLite file that threads and processes share: a LangChain `ByteStore`."""

from __future__ import annotations

import hashlib
import os
import sqlite3
import time
from collections.abc import AsyncIterator, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from types import TracebackType
from typing import Self

from langchain_core.runnables import run_in_executor
from langchain_core.stores import BaseStore

from code_chains.errors import ConfigurationError, InputError, StoreError, check_int
from code_chains.storage.files import exclusive
from code_chains.storage.sqlite_connections import SharedConnection, open_store
from code_chains.storage.sqlite_file import MOVE_ADVICE

# Later than all previous uses, also where two coincide or the clock is set back: the LRU order is exact.
_NOW = "max(?, (SELECT coalesce(max(used), 0) + 1e-6 FROM entries))"
_GET = "SELECT value, used FROM entries WHERE key = ? AND (expires IS NULL OR expires > ?)"
_PUT = f"""
INSERT INTO entries (key, value, size, expires, used) VALUES (?, ?, ?, ?, {_NOW}) ON CONFLICT (key)
DO UPDATE SET value = excluded.value, size = excluded.size, expires = excluded.expires, used = excluded.used
"""  # noqa: S608
_USE = f"UPDATE entries SET used = {_NOW} WHERE key = ?"  # noqa: S608
_EXPIRE = "DELETE FROM entries WHERE expires <= ?"
# Keys are ordered by their bytes, so all keys with a prefix are one range, whatever characters it has.
_IN_RANGE = "key >= CAST(? AS TEXT) AND key < CAST(? AS TEXT)"
_KEYS = f"SELECT key FROM entries WHERE {_IN_RANGE} AND (expires IS NULL OR expires > ?) ORDER BY key LIMIT ?"  # noqa: S608
_CLEAR = f"DELETE FROM entries WHERE {_IN_RANGE}"  # noqa: S608
_STATS = """
SELECT count(*) - count(gone), coalesce(sum(size), 0) - coalesce(sum(gone), 0), count(gone)
FROM (SELECT size, CASE WHEN expires <= ? THEN size END AS gone FROM entries)
"""

PAGE_KEYS = 1000
"""Keys per query of `yield_keys`."""
USE_INTERVAL_S = 1.0
"""Further reads of an entry within this time are not recorded as uses."""
_WRITABLE = "Make the file and its folder writable, or choose another path."
_ADVICE = {
    sqlite3.SQLITE_BUSY: "Another process kept it locked for longer than its timeout; try again, or raise timeout=.",
    sqlite3.SQLITE_CANTOPEN: _WRITABLE,
    sqlite3.SQLITE_CORRUPT: MOVE_ADVICE,
    sqlite3.SQLITE_FULL: "Free space on its disk.",
    sqlite3.SQLITE_IOERR: "Check whether its disk is full or damaged.",
    sqlite3.SQLITE_NOTADB: MOVE_ADVICE,
    sqlite3.SQLITE_READONLY: _WRITABLE,
}


@dataclass(frozen=True)
class StoreStats:
    """The size of a store.

    Attributes:
        entries: Number of entries that can be read.
        bytes: Total size of their values.
        expired: Number of further entries that have expired; the next write deletes them.
    """

    entries: int
    bytes: int
    expired: int


class SqliteStore(BaseStore[str, bytes]):
    """A key-value store in one file. Any number of threads and processes may use it at once.

    A write is visible to all others once its method returns. It survives a crash of the process; a loss of
    power may undo the most recent writes, but never damages the file. The async methods run in threads. A
    forked child opens its own connections. A process has two connections at most, one to read and one to write.

    A file of another program, and a store whose schema was changed, are refused.

    Args:
        path: The file; it and its folders are created, accessible to their owner alone.
        ttl: Time to live in seconds of entries written by this store; None means that they never expire.
        max_bytes: Total size of all values; None for no limit. The least recently used entries are evicted; a
            read counts as a use about once per second. A value larger than this is not stored, and the
            previous one is deleted.
        timeout: Seconds to wait while others write.

    Raises:
        ConfigurationError: An argument is invalid.
        StoreError: The file cannot be created or written, or is not a store. It is left unchanged.
    """

    def __init__(
        self,
        path: str | os.PathLike[str],
        *,
        ttl: float | None = None,
        max_bytes: int | None = None,
        timeout: float = 10.0,
    ) -> None:
        if max_bytes is not None:
            check_int("max_bytes", max_bytes, "a whole number of bytes, at least 1, or None", minimum=1)
        self.path: Path = _absolute(path)
        self.ttl: float | None = None if ttl is None else _seconds("ttl", ttl)
        self.max_bytes = max_bytes
        self.timeout: float = _seconds("timeout", timeout)
        open_file = partial(open_store, self.path, self.timeout)
        self._reader, self._writer = SharedConnection(open_file), SharedConnection(open_file)
        with self._errors(), self._reader.use():
            pass  # It opens, and can still be read once the disk is full.

    # -- LangChain's ByteStore -------------------------------------------------------------------------------

    def mget(self, keys: Sequence[str]) -> list[bytes | None]:
        """Return the values of keys, as of one moment; None for a key without an entry."""
        checked, now = _keys(keys), time.time()
        with self._reading() as connection:
            rows = [connection.execute(_GET, (key, now)).fetchone() for key in checked]
        if self.max_bytes is not None:
            found = zip(checked, rows, strict=True)
            self._record_use([key for key, row in found if row and row[1] <= now - USE_INTERVAL_S])
        return [row[0] if row else None for row in rows]

    def mset(self, key_value_pairs: Sequence[tuple[str, bytes]]) -> None:
        """Write all pairs or, if it raises, none."""
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
                _evict(connection, self.max_bytes)

    def mdelete(self, keys: Sequence[str]) -> None:
        """Delete entries; keys without an entry are ignored."""
        if checked := _keys(keys):
            with self._writing() as connection:
                connection.executemany("DELETE FROM entries WHERE key = ?", [(key,) for key in checked])

    def yield_keys(self, *, prefix: str | None = None) -> Iterator[str]:
        """Iterate over the keys with a prefix, in order, without a lock between pages."""
        start, end = _range(prefix)
        while page := self._page(start, end):
            yield from page
            start = page[-1].encode() + b"\0"

    async def ayield_keys(self, *, prefix: str | None = None) -> AsyncIterator[str]:
        """Iterate over the keys with a prefix without blocking the event loop."""
        start, end = _range(prefix)
        while page := await run_in_executor(None, self._page, start, end):
            for key in page:
                yield key
            start = page[-1].encode() + b"\0"

    # -- housekeeping ----------------------------------------------------------------------------------------

    def stats(self) -> StoreStats:
        """Count the entries and their bytes, in time proportional to their number."""
        with self._reading() as connection:
            return StoreStats(*connection.execute(_STATS, (time.time(),)).fetchone())

    def clear(self, prefix: str = "") -> int:
        """Delete all entries whose keys have a prefix, return their space to the disk, and return their number."""
        with self._writing() as connection:
            connection.execute(_EXPIRE, (time.time(),))
            removed = connection.execute(_CLEAR, _range(prefix)).rowcount
            connection.executescript("PRAGMA incremental_vacuum")  # This commits first.
        return removed

    def lock(self, name: str, seconds: float) -> AbstractContextManager[None]:
        """Keep others, in all processes of this machine, from entering a block for the same name; reads and writes go on.

        Raises:
            OverloadedError: They took longer than these seconds.
        """
        digest = hashlib.sha256(name.encode()).hexdigest()[:16]
        return exclusive(self.path.with_name(f"{self.path.name}.{digest}.lock"), seconds)

    def close(self) -> None:
        """Close the connections once their calls have finished. Later calls open new ones."""
        self._reader.close()
        self._writer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None
    ) -> None:
        self.close()

    # -- the file --------------------------------------------------------------------------------------------

    @contextmanager
    def _reading(self) -> Iterator[sqlite3.Connection]:
        with self._errors(), self._reader.use() as connection:
            connection.execute("BEGIN")
            yield connection
            connection.commit()

    @contextmanager
    def _writing(self) -> Iterator[sqlite3.Connection]:
        with self._errors(), self._writer.use() as connection:
            connection.execute("BEGIN IMMEDIATE")
            yield connection
            connection.commit()

    def _record_use(self, keys: list[str]) -> None:
        """Record that entries were read, unless a write is running: a read never waits."""
        if not keys:
            return
        with self._errors(), self._reader.use() as connection:
            connection.execute("PRAGMA busy_timeout = 0")
            with suppress(sqlite3.OperationalError):
                connection.execute("BEGIN IMMEDIATE")
                connection.executemany(_USE, [(time.time(), key) for key in keys])
                connection.commit()
            connection.rollback()
            connection.execute(f"PRAGMA busy_timeout = {int(self.timeout * 1000)}")

    def _page(self, start: bytes, end: bytes) -> list[str]:
        with self._reading() as connection:
            return [key for (key,) in connection.execute(_KEYS, (start, end, time.time(), PAGE_KEYS))]

    @contextmanager
    def _errors(self) -> Iterator[None]:
        """Turn errors of SQLite and the system into ones that name the file and the remedy."""
        try:
            yield
        except sqlite3.Error as error:
            code = getattr(error, "sqlite_errorcode", 0) & 0xFF
            raise StoreError(
                f"The store {self.path} cannot be used: {error}. {_ADVICE.get(code, '')}".rstrip(),
                is_retryable=code == sqlite3.SQLITE_BUSY,
            ) from error
        except OSError as error:
            raise StoreError(f"The store {self.path} cannot be created: {error}. {_WRITABLE}") from error


def _evict(connection: sqlite3.Connection, max_bytes: int) -> None:
    """Delete the least recently used entries until the rest fits."""
    excess = connection.execute("SELECT bytes FROM total").fetchone()[0] - max_bytes
    removed = []
    for identity, size in connection.execute("SELECT id, size FROM entries ORDER BY used, id"):
        if excess <= 0:
            break
        removed.append((identity,))
        excess -= size
    connection.executemany("DELETE FROM entries WHERE id = ?", removed)


def _absolute(path: str | os.PathLike[str]) -> Path:
    """Return an absolute path, which a change of the working directory does not affect."""
    if not isinstance(path, str | os.PathLike) or str(path) in ("", ":memory:") or "\0" in str(path):
        raise ConfigurationError(
            "path",
            path,
            "the path of a file; for a store in memory there is langchain_core.stores.InMemoryByteStore",
        )
    return Path(path).expanduser().absolute()


def _seconds(argument: str, value: float) -> float:
    if isinstance(value, bool) or not isinstance(value, int | float) or not 0 < value < 1e9:
        raise ConfigurationError(argument, value, "a number of seconds above 0")
    return float(value)


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
        raise InputError(f"The key {key!r} is not valid Unicode (it contains surrogates).") from error
    return key


def _value(key: str, value: object) -> bytes:
    if not isinstance(value, bytes):
        raise InputError(
            f"The value of {key!r} must be bytes, not {type(value).__name__}. Encode it, e.g. as JSON."
        )
    return value


def _range(prefix: str | None) -> tuple[bytes, bytes]:
    """Return the bounds of the keys with a prefix.

    0xff is above every byte of UTF-8, so adding 1 never overflows.
    """
    start = _key(prefix or "").encode()
    return start, start[:-1] + bytes([start[-1] + 1]) if start else b"\xff"
