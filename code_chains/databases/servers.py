"""Servers of databases, read over connections of our own that are closed after each statement."""

from __future__ import annotations

import json
import re
import time
from collections.abc import Collection, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal

from code_chains.analysis.queries import read_only
from code_chains.errors import ConfigurationError, ExecutorError
from code_chains.executors.sql import Rows

if TYPE_CHECKING:
    from sqlalchemy import URL
    from sqlalchemy.engine import Connection

_MAX_BYTES, _MAX_CELL_CHARS = 64 << 20, 100
_CONNECT_S = 10
_BEGIN = {
    "postgresql": (
        "SET TRANSACTION READ ONLY",
        "SET LOCAL standard_conforming_strings = on",  # As statements are written here.
        "SET LOCAL statement_timeout = {ms}",
    ),
    "oracle": ("SET TRANSACTION READ ONLY",),
    "mysql": ("SET SESSION TRANSACTION READ ONLY", "SET SESSION max_execution_time = {ms}"),
    "mariadb": ("SET SESSION TRANSACTION READ ONLY", "SET SESSION max_statement_time = {seconds}"),
}
"""What keeps a server from writing, and ends long statements."""
_CONNECT_ARGUMENTS = {
    "psycopg": "connect_timeout",
    "psycopg2": "connect_timeout",
    "pymysql": "connect_timeout",
}
_CURSOR = re.compile(r"\n?LINE \d+: (DECLARE|\.\.\.).*", re.DOTALL)
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


class Server:
    """A server of a database, which is read.

    Args:
        url: Its URL.
        tables: The tables that may be read; none for all of the default schema.

    Attributes:
        dialect: SQLAlchemy's name of its dialect.
        name: What it is called: driver, user, host and database, without a password or options.

    Raises:
        ConfigurationError: SQLAlchemy cannot read the URL, or its driver is not installed.
    """

    def __init__(self, url: str | URL, tables: Collection[str] = ()) -> None:
        import sqlalchemy
        from sqlalchemy.pool import NullPool

        try:
            parsed = sqlalchemy.make_url(url)
            name = parsed.get_driver_name()
            argument = _CONNECT_ARGUMENTS.get(name)
            options = {argument: _CONNECT_S} if argument and argument not in parsed.query else {}
            self._engine = sqlalchemy.create_engine(parsed, poolclass=NullPool, connect_args=options)
        except ImportError as error:
            raise ConfigurationError(
                "database", "a URL", "the driver's package", because=str(error)
            ) from None
        except Exception:
            because = "SQLAlchemy cannot read it"
            raise ConfigurationError("database", "a URL", "a URL of SQLAlchemy", because=because) from None
        self.dialect: str = self._engine.dialect.name
        self.name: str = parsed.set(query={}).render_as_string(hide_password=True)
        self._tables = tuple(tables)

    def fetch(self, sql: str, max_rows: int, seconds: float) -> Rows:
        """Return the rows of a statement.

        Raises:
            StatementError: There are none.
            ExecutorError: The server cannot be reached.
        """
        query = read_only(sql, self.dialect, self._tables)
        if query.refusal:
            raise StatementError("refused", query.refusal)
        deadline = time.monotonic() + seconds
        with self._connected(seconds) as connection:
            try:
                options: dict[str, Any] = {"no_parameters": True, "stream_results": True}
                # Invariant: what is run is what was checked, not the text that was given.
                result = connection.execution_options(**options).exec_driver_sql(query.text)
                return _fetched(result, max_rows, deadline)
            except Exception as error:
                connection.invalidate()  # Its cursor may not be closed within the time.
                if time.monotonic() > deadline:
                    raise StatementError("timeout") from error
                original = getattr(error, "orig", None) or error
                message = _CURSOR.sub("", str(original))
                raise StatementError("error", message, type(original).__name__) from error

    def describe(self, samples: int) -> str:
        """Return the definitions of tables and views, with so many rows of each as lines of JSON.

        Raises:
            ConfigurationError: A table is missing.
            ExecutorError: The server cannot be reached.
        """
        import sqlalchemy
        from sqlalchemy.schema import CreateTable

        parts = []
        with self._connected(_CONNECT_S) as connection:
            inspector = sqlalchemy.inspect(connection)
            found = sorted([*inspector.get_table_names(), *inspector.get_view_names()])
            if missing := set(self._tables) - set(found):
                raise ConfigurationError("tables", min(missing), f"some of {', '.join(found)}")
            for name in self._tables or found:
                table = sqlalchemy.Table(
                    name, sqlalchemy.MetaData(), autoload_with=connection, resolve_fks=False
                )
                definition = str(CreateTable(table, include_foreign_key_constraints=[])).strip()
                rows = self._sample(connection, sqlalchemy.select(table).limit(samples)) if samples else []
                parts.append("\n".join([definition, *rows]))
        return "\n\n".join(parts)

    def _sample(self, connection: Connection, query: Any) -> list[str]:
        with connection.begin_nested() as point:
            try:
                rows = connection.execute(query).fetchall()
            except Exception as error:
                point.rollback()
                return [f"(cannot be read: {type(error).__name__})"]
        return [json.dumps([_shown(value) for value in row], ensure_ascii=False, default=str) for row in rows]

    @contextmanager
    def _connected(self, seconds: float) -> Iterator[Connection]:
        """Provide a connection with a transaction that only reads, and is rolled back."""
        try:
            connection = self._engine.connect()
        except Exception as error:
            reason = str(getattr(error, "orig", None) or error)
            raise ExecutorError(f"The database cannot be reached: {reason}.", is_retryable=True) from error
        with connection:
            for statement in _BEGIN.get(self.dialect, ()):
                connection.exec_driver_sql(statement.format(ms=max(10, int(seconds * 1000)), seconds=seconds))
            try:
                yield connection
            finally:
                if not connection.invalidated:
                    connection.rollback()


def _fetched(result: Any, max_rows: int, deadline: float) -> Rows:
    """Return the first rows, as long as time is left and their texts are not too large together."""
    columns, rows, size = [str(key) for key in result.keys()], list[tuple[Any, ...]](), 0  # noqa: SIM118
    while columns and len(rows) <= max_rows and size <= _MAX_BYTES:
        if time.monotonic() > deadline:
            raise TimeoutError
        row = result.fetchone()
        if row is None:
            return Rows(columns, rows, has_more=False)
        rows.append(tuple(row))
        size += sum(len(value) for value in row if isinstance(value, str | bytes))
    return Rows(columns, rows[:-1], has_more=bool(columns))


def _shown(value: Any) -> Any:
    return value[:_MAX_CELL_CHARS] if isinstance(value, str) else value
