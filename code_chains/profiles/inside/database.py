"""SQLite databases: tables, views, columns, keys and rows. Nothing of the database's own runs: no view, no trigger."""

from __future__ import annotations

import contextlib
import importlib.util
import sqlite3
import time
import urllib.parse
from operator import itemgetter
from typing import Any

from .columns import literal
from .frames import Json, describe_frame, describe_lists, plural, row_text
from .source import Source

MAX_TABLES = 12
MAX_ROWS = 20_000
"""Rows of a table that are read."""
KEYWORDS = {
    "add", "all", "alter", "and", "as", "case", "check", "column", "commit", "create", "default",
    "delete", "distinct", "drop", "else", "exists", "from", "group", "having", "in", "index", "insert",
    "into", "is", "join", "limit", "not", "null", "on", "or", "order", "primary", "references",
    "select", "set", "table", "then", "to", "transaction", "union", "unique", "update", "using",
    "values", "when", "where",
}  # fmt: skip
"""Words of SQL that a table is not called without quotes."""
TIMEOUT_S = 0.5
"""Seconds for one statement."""


def profile_database(source: Source) -> Json:
    """Describe the tables of a database."""
    address, connect = _connection(source.name)
    with contextlib.closing(sqlite3.connect(address, uri=True)) as database:
        return {"format": "SQLite database", **describe_database(database, connect)}


def describe_database(database: sqlite3.Connection, connect: str) -> Json:
    """Describe the tables of an open database, which a program opens with an expression."""
    database.execute("PRAGMA trusted_schema = OFF")
    query = "SELECT name, type, sql FROM sqlite_master WHERE type IN ('table', 'view') AND name NOT LIKE 'sqlite_%'"
    entries = database.execute(f"{query} ORDER BY type, rowid LIMIT 200").fetchall()
    parts = [_profile_entry(database, connect, *entry) for entry in entries[:MAX_TABLES]]
    facts = [
        plural(len(entries), "table or view") if len(entries) == 1 else f"{len(entries)} tables and views"
    ]
    return {"facts": facts, "read": [], "parts": parts}


def _connection(name: str) -> tuple[str, str]:
    """Return the address that opens a database read-only, and the expression that does so for a program."""
    address = f"file:{urllib.parse.quote(name)}?mode=ro&immutable=1"
    try:
        with contextlib.closing(sqlite3.connect(name)) as database:
            database.execute("SELECT count(*) FROM sqlite_master")
    except sqlite3.Error:  # Such as one with a write-ahead log, whose folder would have to be writable.
        return address, f"sqlite3.connect({literal(address)}, uri=True)"
    return address, f"sqlite3.connect({literal(name)})"


def _name(name: str) -> str:
    return (
        name if name.isidentifier() and name.lower() not in KEYWORDS else '"' + name.replace('"', '""') + '"'
    )


def _limit_time(database: sqlite3.Connection) -> None:
    deadline = time.monotonic() + TIMEOUT_S
    database.set_progress_handler(lambda: time.monotonic() > deadline, 10_000)


def _profile_entry(database: sqlite3.Connection, connect: str, name: str, kind: str, sql: str | None) -> Json:
    is_table = kind == "table" and not (sql or "").upper().startswith("CREATE VIRTUAL")
    try:
        _limit_time(database)
        if is_table:
            return _profile_table(database, connect, name)
        return {"name": name, "facts": ["view" if kind == "view" else "virtual table"]}
    except (sqlite3.Error, ValueError) as error:
        return {"name": name, "facts": [kind, f"not readable ({type(error).__name__})"]}


def _profile_table(database: sqlite3.Connection, connect: str, name: str) -> Json:
    table = '"' + name.replace('"', '""') + '"'
    columns = database.execute(f"PRAGMA table_info({table})").fetchall()
    keys = database.execute(f"PRAGMA foreign_key_list({table})").fetchall()
    count = _count(database, table)
    _limit_time(database)
    cursor = database.execute(f"SELECT * FROM {table} LIMIT {MAX_ROWS}")
    names = list(map(itemgetter(0), cursor.description))
    rows = cursor.fetchall()
    facts = ["many rows" if count is None else plural(count, "row")]
    facts += map("{0[3]} refers to {0[2]}.{0[4]}".format, keys[:8])
    if rows:
        described = _columns(names, rows)
    else:
        described = [{"name": each[1], "type": each[2], "detail": "", "missing": 0} for each in columns[:40]]
    return {
        "name": name,
        "facts": facts,
        "read": _lines(connect, name),
        "columns": described,
        "column_count": len(names),
        "first_rows": list(map(row_text, rows[:3])),
    }


def _lines(connect: str, name: str) -> list[str]:
    """Return the lines that read a table."""
    query = literal(f"SELECT * FROM {_name(name)}")
    if importlib.util.find_spec("pandas") is None:
        return ["import sqlite3", f"rows = {connect}.execute({query}).fetchall()"]
    return ["import sqlite3", "import pandas as pd", f"df = pd.read_sql({query}, {connect})"]


def _count(database: sqlite3.Connection, table: str) -> int | None:
    try:
        _limit_time(database)
        return int(database.execute(f"SELECT count(*) FROM {table}").fetchone()[0])
    except sqlite3.Error:
        return None


def _columns(names: list[str], rows: list[tuple[Any, ...]]) -> list[Json]:
    if importlib.util.find_spec("pandas") is None:
        return describe_lists(names, rows)
    import pandas as pd

    return describe_frame(pd.DataFrame(rows, columns=names))
