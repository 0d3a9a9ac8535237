"""The file of a `SqliteStore`: its schema, how it is created, and the check that an existing file is a store."""

from __future__ import annotations

import functools
import os
import sqlite3
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import closing, contextmanager
from pathlib import Path

from filelock import FileLock

from code_chains.errors import StoreError

if sys.platform != "win32":
    import fcntl

APPLICATION_ID = int.from_bytes(b"cchn")
"""The application id in the header of every store."""
FORMAT_VERSION = 1
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
PRAGMA application_id = {APPLICATION_ID};
PRAGMA user_version = {FORMAT_VERSION};
COMMIT;
"""  # noqa: S608 - only constants

MOVE_ADVICE = "Choose another path, or move the file away; a new one is created in its place."


def _has_content(path: Path) -> bool:
    """Return whether a file exists and is not empty."""
    try:
        status = path.stat()
    except FileNotFoundError:
        return False
    # Invariant: a device or a FIFO is never replaced by a new store.
    if not stat.S_ISREG(status.st_mode):
        raise OSError("it is a folder" if stat.S_ISDIR(status.st_mode) else "it is not a regular file")
    return status.st_size > 0


def create(path: Path) -> None:
    """Create a store unless the file exists. It is written in a temporary folder and renamed, so it is never incomplete.

    Raises:
        OSError: The file or its folders cannot be created.
    """
    if _has_content(path):
        return
    for folder in reversed([path.parent, *path.parent.parents]):
        folder.mkdir(mode=0o700, exist_ok=True)
    with _exclusive(path.parent):
        if _has_content(path):  # Another process has created it meanwhile.
            return
        # Left over from a deleted file, these would be applied to the new one.
        for ending in ("-wal", "-shm", "-journal"):
            path.with_name(path.name + ending).unlink(missing_ok=True)
        with tempfile.TemporaryDirectory(dir=path.parent, prefix=f".{path.name}-") as temporary:
            fresh = Path(temporary) / "store"
            with closing(sqlite3.connect(fresh)) as connection:
                connection.executescript(_SCHEMA)
            fresh.chmod(0o600)
            fresh.replace(path)  # An empty file may be there, over which Windows renames nothing.


@contextmanager
def _exclusive(folder: Path) -> Iterator[None]:
    """Keep other processes from creating a store in a folder."""
    if sys.platform == "win32":  # Folders cannot be locked there.
        with FileLock(folder / ".code_chains.lock"):
            yield
        return
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        yield
    finally:
        os.close(descriptor)


def verify(path: Path, connection: sqlite3.Connection) -> None:
    """Check that a file is a store of this format.

    Raises:
        StoreError: It is another database, of another format, or its schema was changed.
    """
    application = connection.execute("PRAGMA application_id").fetchone()[0]
    version = connection.execute("PRAGMA user_version").fetchone()[0]
    if application != APPLICATION_ID:
        raise StoreError(f"The file {path} is another kind of database. {MOVE_ADVICE}")
    if version != FORMAT_VERSION:
        raise StoreError(
            f"The store {path} has format {version}; this version of code_chains knows format {FORMAT_VERSION}."
            f" Upgrade code_chains, or choose another path."
        )
    # Foreign views and triggers would run arbitrary SQL within our statements.
    if _schema_of(connection) != _expected_schema():
        raise StoreError(f"The tables of the store {path} were changed by something else. {MOVE_ADVICE}")


def _schema_of(connection: sqlite3.Connection) -> list[tuple[str, ...]]:
    statement = (
        "SELECT type, name, tbl_name, coalesce(sql, '') FROM sqlite_master ORDER BY type, name LIMIT 100"
    )
    return connection.execute(statement).fetchall()


@functools.cache
def _expected_schema() -> list[tuple[str, ...]]:
    with closing(sqlite3.connect(":memory:")) as connection:
        connection.executescript(_SCHEMA)
        return _schema_of(connection)
