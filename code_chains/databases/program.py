"""The program that reads a database file inside a sandbox: SQLite or DuckDB, one line of JSON printed.

It is not imported but run as a program by the executor of `DatabaseExecutor`, with a variable `request`. It needs the
standard library and, for DuckDB, that. The sandbox is the boundary; that nothing but the tables is read is up to SQLite's
authorizer, and for DuckDB to a database in memory which holds nothing else.

A request has `kind`, `file`, `tables` (none for all), `sql` or, to describe the tables, `samples` (rows of each), `rows`
(their maximum number) and `memory`.
"""

from __future__ import annotations

import json
import math
import sqlite3
import sys
from collections.abc import Callable
from typing import Any

Json = dict[str, Any]

MAX_BYTES = 64 << 20
MAX_CELL_CHARS = 100
SQLITE_READS = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
SQLITE_TABLES = """
SELECT name, sql FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%' ORDER BY 1
"""
DUCKDB_TABLES = """
SELECT table_name, sql FROM duckdb_tables() WHERE database_name = 'given' AND schema_name = 'main'
UNION ALL SELECT view_name, sql FROM duckdb_views() WHERE database_name = 'given' AND NOT internal ORDER BY 1
"""
DUCKDB_READS = ("SELECT", "EXPLAIN", "MULTI")  # PIVOT is parsed as MULTI.
DUCKDB_LOCKS = (
    "enable_external_access = false",
    "autoinstall_known_extensions = false",
    "autoload_known_extensions = false",
    "allow_community_extensions = false",
    "python_enable_replacements = false",
    "lock_configuration = true",
)


class RefusedError(Exception):
    """A statement does more than read what it may."""


def main(request: Json) -> None:
    """Run the request and print the outcome."""
    outcome: Json
    try:
        outcome = (of_sqlite if request["kind"] == "sqlite" else of_duckdb)(request)
    except RefusedError as error:
        outcome = {"refused": str(error)}
    except MemoryError:
        raise
    except Exception as error:  # Of either library, and of the text of a statement.
        if type(error).__name__ == "OutOfMemoryException":
            raise MemoryError from error
        outcome = {"error": {"type": type(error).__name__, "message": str(error)}}
    sys.stdout.write(json.dumps(outcome))


def of_sqlite(request: Json) -> Json:
    """Read a file of SQLite."""
    database = sqlite3.connect(f"file:{request['file']}?mode=ro&immutable=1", uri=True)
    if "samples" in request:
        return described(database.execute, database.execute(SQLITE_TABLES).fetchall(), "", request)
    allowed, refused = {name.lower() for name in request["tables"]}, list[str]()

    def authorize(action: int, first: str | None, second: str | None, _: object, within: str | None) -> int:
        is_hidden = action == sqlite3.SQLITE_READ and allowed and (first or "").lower() not in allowed
        # What a view reads comes with its name, and may be read if the view may.
        is_in_view = is_hidden and (within or "").lower() in allowed
        if action in SQLITE_READS and (second or "").lower() != "load_extension":
            if not is_hidden or is_in_view:
                return sqlite3.SQLITE_OK
            refused.append(f"reading {first}")
        refused.append("anything but reading")
        return sqlite3.SQLITE_DENY

    database.set_authorizer(authorize)
    try:
        return rows_of(database.execute(request["sql"]), request["rows"])
    except sqlite3.DatabaseError as error:
        if refused:
            raise RefusedError(refused[0]) from error
        raise


def of_duckdb(request: Json) -> Json:
    """Read a file of DuckDB: of named tables a copy, which holds nothing else."""
    import duckdb

    database = duckdb.connect(":memory:")
    database.execute(f"SET memory_limit = '{request['memory']}B'; SET threads = 2")
    database.execute(f"ATTACH '{request['file']}' AS given (READ_ONLY)")
    found = database.execute(DUCKDB_TABLES).fetchall()
    if "samples" in request:
        return described(database.execute, found, "given.main.", request)
    if request["tables"]:
        wanted = {name.lower() for name in request["tables"]}
        for name in (name for name, _ in found if name.lower() in wanted):
            database.execute(f"CREATE TABLE {quoted(name)} AS FROM given.main.{quoted(name)}")
        database.execute("DETACH given")
    else:
        database.execute("USE given")
    for lock in DUCKDB_LOCKS:
        database.execute(f"SET {lock}")
    statements = database.extract_statements(request["sql"])
    for statement in statements:
        if statement.type.name not in DUCKDB_READS:
            raise RefusedError(statement.type.name)
    for statement in statements:
        database.execute(statement)
    return rows_of(database, request["rows"]) if statements else {"columns": [], "rows": [], "more": False}


def described(execute: Callable[[str], Any], found: list[Any], prefix: str, request: Json) -> Json:
    """Return the definitions of the tables and their first rows, of which each is a line of JSON."""
    wanted = {name.lower() for name in request["tables"]}
    tables = [[name, str(sql)] for name, sql in found if not wanted or name.lower() in wanted]
    for table in tables if request["samples"] else ():
        try:
            query = f"SELECT * FROM {prefix}{quoted(table[0])} LIMIT {request['samples']}"  # noqa: S608
            sample = rows_of(execute(query), 100)
        except Exception as error:
            table.append(f"(cannot be read: {type(error).__name__})")
            continue
        table += [json.dumps([shown(value) for value in row]) for row in sample["rows"]]
    return {"tables": tables}


def rows_of(cursor: Any, max_rows: int) -> Json:
    """Return the first rows, as long as their texts are not too large together."""
    columns, rows, size = [column[0] for column in cursor.description or ()], list[list[Any]](), 0
    while len(rows) <= max_rows and size <= MAX_BYTES:
        row = cursor.fetchone() if columns else None
        if row is None:
            return {"columns": columns, "rows": rows, "more": False}
        rows.append([cell(value) for value in row])
        size += sum(len(value) for value in rows[-1] if isinstance(value, str))
    return {"columns": columns, "rows": rows[:-1], "more": True}


def cell(value: Any) -> Any:
    """Return a value as JSON; a decimal is a number, and other types become text."""
    if type(value).__name__ == "Decimal":
        return float(value)
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def shown(value: Any) -> Any:
    """Return a value of a sample, cut."""
    return value[:MAX_CELL_CHARS] if isinstance(value, str) else value


def quoted(name: str) -> str:
    """Return an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


if __name__ == "__main__":
    main(globals()["request"])
