"""Databases of the application, which are read and never changed."""

from __future__ import annotations

import re
import sqlite3
import threading
import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from code_chains.analysis.queries import read_only
from code_chains.errors import ConfigurationError, ExecutorError, needs

if TYPE_CHECKING:
    from sqlalchemy import Engine
    from sqlalchemy.engine import Connection

_DUCKDB_MAGIC, _SQLITE_MAGIC = b"DUCK", b"SQLite format 3\0"
_MAX_CELL_CHARS = 100
_MAX_BYTES, _MAX_VALUE_BYTES = 64 << 20, 16 << 20
"""Bytes of the texts of all rows, and of one value of SQLite."""
_PROGRESS_STEPS = 10_000
"""Instructions of SQLite between two looks at the clock."""
_SQLITE_READS = frozenset(
    (sqlite3.SQLITE_SELECT, sqlite3.SQLITE_READ, sqlite3.SQLITE_FUNCTION, sqlite3.SQLITE_RECURSIVE)
)
_DUCKDB_LOCKS: dict[str, str | bool | int | float | list[str]] = {
    "enable_external_access": "false",
    "autoinstall_known_extensions": "false",
    "autoload_known_extensions": "false",
    "allow_community_extensions": "false",
    "python_enable_replacements": "false",
    "memory_limit": "512MB",
    "temp_directory": "",
    "threads": "2",
    "lock_configuration": "true",
}
_SQLITE_TABLES = """
SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY 1
"""
_DUCKDB_TABLES = """
SELECT table_name, sql FROM duckdb_tables()
UNION ALL SELECT view_name, sql FROM duckdb_views() WHERE NOT internal ORDER BY 1
"""
_TIMEOUTS = {
    "postgresql": "SET LOCAL statement_timeout = {ms}",
    "mysql": "SET SESSION max_execution_time = {ms}",
    "mariadb": "SET SESSION max_statement_time = {seconds}",
}
_READ_ONLY = {
    "postgresql": "SET TRANSACTION READ ONLY",
    "oracle": "SET TRANSACTION READ ONLY",
    "mysql": "SET SESSION TRANSACTION READ ONLY",
    "mariadb": "SET SESSION TRANSACTION READ ONLY",
}
"""What keeps a server from writing in a transaction."""


_CURSOR = re.compile(r"\nLINE \d+: DECLARE .*", re.DOTALL)
"""Where PostgreSQL shows a statement of the driver's own."""


class StatementError(Exception):
    """A statement has no rows.

    Args:
        status: `refused`, as it may do more than read; `error`, of the database; or `timeout`.
        message: Why.
        kind: The name of the driver's exception.
    """

    def __init__(
        self, status: Literal["refused", "error", "timeout"], message: str = "", kind: str = "Refused"
    ) -> None:
        super().__init__(message)
        self.status: Literal["refused", "error", "timeout"] = status
        self.kind = kind


class Rows(NamedTuple):
    """The rows of a statement.

    Attributes:
        columns: Their names.
        rows: As many as were asked for.
        has_more: Whether there are more.
    """

    columns: list[str]
    rows: list[Sequence[Any]]
    has_more: bool


@dataclass(frozen=True)
class Database:
    """A database that statements can read.

    Attributes:
        dialect: SQLAlchemy's name of its dialect.
        name: What it is called, without a password.
        tables: The tables that may be read; empty for all.
        fetch: Returns the rows of a statement: `(statement, maximum number of rows, monotonic deadline)`.
        describe: Describes the tables, with so many rows of each.
    """

    dialect: str
    name: str
    tables: tuple[str, ...]
    fetch: Callable[[str, int, float], Rows]
    describe: Callable[[int], str]


def open_database(database: object, tables: Collection[str] = ()) -> Database:
    """Open a database to read it.

    Args:
        database: The path of a file of SQLite or DuckDB, a URL or an `Engine` of SQLAlchemy, or LangChain's `SQLDatabase`.
        tables: The tables that may be read; none for all, or for those of the `SQLDatabase`.

    Raises:
        ConfigurationError: It is none of these, or there is no such file, driver or table.
    """
    if isinstance(database, Path) or (isinstance(database, str) and "://" not in database):
        return _of_file(Path(database), tuple(tables))
    if isinstance(database, str) and database.startswith("duckdb:///"):
        return _of_file(Path(database.removeprefix("duckdb:///")), tuple(tables))
    engine: Any = (
        _engine_of(database) if isinstance(database, str) else getattr(database, "_engine", database)
    )
    if not hasattr(engine, "dialect"):
        remedy = "the path of a file, a URL or Engine of SQLAlchemy, or a SQLDatabase"
        raise ConfigurationError("database", type(database).__name__, remedy)
    if not tables and getattr(database, "_include_tables", None):
        tables = database.get_usable_table_names()  # type: ignore[attr-defined]
    return _of_engine(engine, tuple(tables))


def _engine_of(url: str) -> Engine:
    import sqlalchemy

    try:
        parsed = sqlalchemy.make_url(url)
        if parsed.get_backend_name() == "sqlite" and parsed.database:
            return _sqlite_engine(Path(parsed.database))
        return sqlalchemy.create_engine(parsed, pool_pre_ping=True)
    except (
        sqlalchemy.exc.ArgumentError,
        ImportError,
    ) as error:  # Invariant: no password is in these messages.
        because = (
            str(error).splitlines()[0] if isinstance(error, ImportError) else "SQLAlchemy cannot read it"
        )
        raise ConfigurationError("database", "a URL", "a URL of SQLAlchemy", because=because) from None


def _of_file(path: Path, tables: tuple[str, ...]) -> Database:
    try:
        with path.open("rb") as file:
            head = file.read(16)
    except OSError as error:
        because = error.strerror or "it cannot be read"
        raise ConfigurationError("database", str(path), "the path of a file", because=because) from error
    if head == _SQLITE_MAGIC:
        return _of_engine(_sqlite_engine(path), tables, str(path))
    if head[8:12] == _DUCKDB_MAGIC:
        return _duckdb(path, tables)
    because = "it is none of SQLite or DuckDB"
    raise ConfigurationError("database", str(path), "a file of one of these, or a URL", because=because)


# -- databases of SQLAlchemy -------------------------------------------------------------------------------------------


def _sqlite_engine(path: Path) -> Engine:
    import sqlalchemy
    from sqlalchemy.pool import NullPool

    uri = f"{path.absolute().as_uri()}?mode=ro"

    def connect() -> sqlite3.Connection:
        return sqlite3.connect(uri, uri=True, check_same_thread=False)

    return sqlalchemy.create_engine("sqlite://", creator=connect, poolclass=NullPool)


def _of_engine(engine: Engine, tables: tuple[str, ...], name: str = "") -> Database:
    is_sqlite = engine.dialect.name == "sqlite"

    def describe(sample_rows: int) -> str:
        with _connected(engine) as connection:
            if is_sqlite:
                return _described(_raw(connection), _SQLITE_TABLES, tables, sample_rows)
            return "\n\n".join(_reflected(connection, tables, sample_rows))

    def fetch(sql: str, max_rows: int, deadline: float) -> Rows:
        with _connected(engine) as connection:
            if is_sqlite:
                with _guarded(_raw(connection), tables, deadline) as raw:
                    return _fetched(raw.execute(sql), max_rows)
            return _fetch_of_server(connection, sql, tables, max_rows, deadline)

    url = engine.url.render_as_string(hide_password=True)
    return Database(engine.dialect.name, name or url, tables, fetch, describe)


@contextmanager
def _connected(engine: Engine) -> Iterator[Connection]:
    """Provide a connection, whose transaction is rolled back.

    Raises:
        ExecutorError: There is none, e.g. as the server is down.
    """
    from sqlalchemy.exc import DBAPIError

    try:
        connection = engine.connect()
    except DBAPIError as error:
        raise ExecutorError(f"The database cannot be reached: {error.orig}.", is_retryable=True) from error
    with connection:
        yield connection


def _raw(connection: Connection) -> Any:
    return connection.connection.driver_connection


def _reflected(connection: Connection, tables: tuple[str, ...], sample_rows: int) -> Iterator[str]:
    """Yield the definition of each table and view with its first rows."""
    import sqlalchemy
    from sqlalchemy.schema import CreateTable

    inspector = sqlalchemy.inspect(connection)
    known = {name.lower() for name in tables}
    for name in sorted([*inspector.get_table_names(), *inspector.get_view_names()]):
        if known and name.lower() not in known:
            continue
        table = sqlalchemy.Table(name, sqlalchemy.MetaData(), autoload_with=connection, resolve_fks=False)
        definition = str(CreateTable(table, include_foreign_key_constraints=[])).strip()
        rows: list[Any] = [table.columns.keys()] if sample_rows else []
        if sample_rows:
            rows += connection.execute(sqlalchemy.select(table).limit(sample_rows)).fetchall()
        yield _with_rows(definition, rows)


def _with_rows(definition: str, rows: Iterable[Iterable[Any]]) -> str:
    lines = ["\t".join(str(value)[:_MAX_CELL_CHARS] for value in row) for row in rows]
    return "\n".join([definition, *lines])


def _fetch_of_server(
    connection: Connection, sql: str, tables: tuple[str, ...], max_rows: int, deadline: float
) -> Rows:
    from sqlalchemy.exc import DBAPIError

    dialect, seconds = connection.dialect.name, max(0.01, deadline - time.monotonic())
    query = read_only(sql, dialect, tables)
    if query.refusal:
        raise StatementError("refused", query.refusal)
    if dialect in _READ_ONLY:
        connection.exec_driver_sql(_READ_ONLY[dialect])
    if dialect in _TIMEOUTS:
        connection.exec_driver_sql(_TIMEOUTS[dialect].format(ms=int(seconds * 1000), seconds=seconds))
    options: dict[str, Any] = {"no_parameters": True, "stream_results": True}
    try:
        # Invariant: what is run is what was checked, not the text that was given.
        with connection.execution_options(**options).exec_driver_sql(query.text) as result:
            return _fetched(result, max_rows, list(result.keys()))
    except DBAPIError as error:
        if time.monotonic() > deadline:
            raise StatementError("timeout") from error
        message = _CURSOR.sub("", str(error.orig))
        raise StatementError("error", message, type(error.orig).__name__) from error
    finally:
        connection.rollback()
        connection.invalidate()  # Its session has settings of ours.


@contextmanager
def _guarded(raw: Any, tables: tuple[str, ...], deadline: float) -> Iterator[Any]:
    """Provide a connection of SQLite that refuses all but reading, until the deadline."""
    allowed = {name.lower() for name in tables}
    refusal = [""]

    def authorize(action: int, first: str | None, second: str | None, *_: object) -> int:
        is_read = action in _SQLITE_READS and (second or "").lower() != "load_extension"
        if is_read and not (
            action == sqlite3.SQLITE_READ and allowed and (first or "").lower() not in allowed
        ):
            return sqlite3.SQLITE_OK
        refusal[0] = f"reading {first}" if is_read else "anything but reading"
        return sqlite3.SQLITE_DENY

    def is_over() -> bool:
        return time.monotonic() > deadline

    length = raw.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MAX_VALUE_BYTES)
    raw.set_authorizer(authorize)
    raw.set_progress_handler(is_over, _PROGRESS_STEPS)
    try:
        yield raw
    except sqlite3.Error as error:
        if refusal[0]:
            raise StatementError("refused", f"{refusal[0]} is not allowed") from error
        if is_over():
            raise StatementError("timeout") from error
        raise StatementError("error", str(error), type(error).__name__) from error
    finally:
        raw.set_progress_handler(None, 0)
        raw.set_authorizer(None)
        raw.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, length)


def _fetched(cursor: Any, max_rows: int, columns: list[str] | None = None) -> Rows:
    """Return the first rows, as long as their texts are not too large together."""
    columns = columns or [column[0] for column in cursor.description or ()]
    rows, size = list[Sequence[Any]](), 0
    while len(rows) <= max_rows and size <= _MAX_BYTES:
        row = cursor.fetchone()
        if row is None:
            return Rows(columns, rows, has_more=False)
        rows.append(tuple(row))
        size += sum(len(value) for value in row if isinstance(value, str | bytes))
    return Rows(columns, rows[:-1], has_more=True)


def _described(connection: Any, listing: str, tables: tuple[str, ...], sample_rows: int) -> str:
    """Return the definitions of tables and views with their first rows."""
    known = {name.lower() for name in tables}
    parts = []
    for name, definition in connection.execute(listing).fetchall():
        if known and name.lower() not in known:
            continue
        quoted = '"' + name.replace('"', '""') + '"'
        rows = _fetched(connection.execute(f"SELECT * FROM {quoted} LIMIT {sample_rows}"), sample_rows)  # noqa: S608
        parts.append(_with_rows(definition, [rows.columns, *rows.rows] if sample_rows else []))
    return "\n\n".join(parts)


# -- DuckDB ------------------------------------------------------------------------------------------------------------


def _duckdb(path: Path, tables: tuple[str, ...]) -> Database:
    with needs("sql", "database", "sql"):
        import duckdb

    def fetch(sql: str, max_rows: int, deadline: float) -> Rows:
        with duckdb.connect(str(path), read_only=True, config=_DUCKDB_LOCKS) as connection:
            return _fetch_of_duckdb(connection, sql, tables, max_rows, deadline)

    def describe(sample_rows: int) -> str:
        with duckdb.connect(str(path), read_only=True, config=_DUCKDB_LOCKS) as connection:
            return _described(connection, _DUCKDB_TABLES, tables, sample_rows)

    return Database("duckdb", str(path), tables, fetch, describe)


def _fetch_of_duckdb(
    connection: Any, sql: str, tables: tuple[str, ...], max_rows: int, deadline: float
) -> Rows:
    import duckdb

    query = read_only(sql, "duckdb", tables)
    if query.refusal:
        raise StatementError("refused", query.refusal)
    timer = threading.Timer(max(0.01, deadline - time.monotonic()), connection.interrupt)
    timer.start()
    try:
        return _fetched(connection.execute(query.text), max_rows)
    except duckdb.InterruptException as error:
        raise StatementError("timeout") from error
    except duckdb.Error as error:
        raise StatementError("error", str(error), type(error).__name__) from error
    finally:
        timer.cancel()
