"""The program that runs SQL inside a sandbox: over tables from files and values, or a database; one line of JSON printed.

It is not imported but run as a program by the executors of SQL, with a variable `request`. It needs the standard library;
DuckDB, but for a file of SQLite alone; and openpyxl for workbooks. The sandbox is the boundary; that nothing else is read
is up to SQLite's authorizer, and to DuckDB's locks, as a second one.

A request has `sql` or, to describe the tables, `samples` (rows of each); `rows` (their maximum number); `memory`; `tables`,
the only ones of databases that may be read, if it names any; and either `sqlite`, a file that is read in its own dialect, or
for DuckDB `files` [[table, path], …] and `values` {table: JSON value}.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import re
import shutil
import sqlite3
import sys
import tempfile
import threading
from collections.abc import Iterable
from contextlib import closing
from datetime import date, datetime
from typing import Any

Json = dict[str, Any]

READERS = {
    **dict.fromkeys(("csv", "tsv"), "read_csv"),
    **dict.fromkeys(("json", "jsonl", "ndjson"), "read_json"),
    "parquet": "read_parquet",
}
"""Functions of DuckDB by the ending of a file."""
DATABASES = ("db", "sqlite", "sqlite3", "duckdb")
WORKBOOKS = ("xlsx", "xlsm")
SAMPLE_SECONDS = 1.0
"""How long the first rows of a table or view may take."""
PATTERN = re.compile(r"[*?\[]")
MAX_BYTES, MAX_CELL_CHARS, MAX_THREADS = 64 << 20, 100, 4
SQLITE_MAGIC = b"SQLite format 3\0"
SQLITE_READS = {
    sqlite3.SQLITE_SELECT,
    sqlite3.SQLITE_READ,
    sqlite3.SQLITE_FUNCTION,
    sqlite3.SQLITE_RECURSIVE,
}
SQLITE_TABLES = """
SELECT name, sql, '' FROM sqlite_master WHERE type IN ('table', 'view') AND substr(name, 1, 7) <> 'sqlite_' ORDER BY 1
"""
DUCKDB_TABLES = """
SELECT table_name, sql FROM duckdb_tables() WHERE database_name = $name AND schema_name = 'main'
UNION ALL SELECT view_name, sql FROM duckdb_views() WHERE database_name = $name AND NOT internal ORDER BY 1
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
COLUMN_TYPES: tuple[tuple[set[type], str], ...] = (
    ({bool}, "BOOLEAN"),
    ({int}, "BIGINT"),
    ({int, float}, "DOUBLE"),
    ({date}, "DATE"),
    ({date, datetime}, "TIMESTAMP"),
)
"""Types of columns by the types of their cells; of others they are VARCHAR."""


class RefusedError(Exception):
    """A statement does more than read what it may."""


class DuplicateError(Exception):
    """Two tables have the same name."""


def main(request: Json) -> None:
    """Run the request and print the outcome."""
    outcome: Json
    try:
        outcome = (of_sqlite if "sqlite" in request else of_duckdb)(request)
    except RefusedError as error:
        outcome = {"refused": str(error)}
    except DuplicateError as error:
        outcome = {"duplicate": str(error)}
    except (MemoryError, ImportError):
        raise
    except Exception as error:  # Of a library, and of the text of a statement.
        if type(error).__name__ == "OutOfMemoryException":
            raise MemoryError from error
        outcome = {"error": {"type": type(error).__name__, "message": str(error)}}
    sys.stdout.write(json.dumps(outcome))


# -- SQLite ------------------------------------------------------------------------------------------------------------


def of_sqlite(request: Json) -> Json:
    """Read a file of SQLite in its own dialect."""
    database = opened(request["sqlite"])
    if "samples" in request:
        return described(database, database.execute(SQLITE_TABLES).fetchall(), request)
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


def opened(path: str) -> sqlite3.Connection:
    """Open a file of SQLite, which nothing changes meanwhile."""
    return sqlite3.connect(f"file:{path}?mode=ro&immutable=1", uri=True)


# -- DuckDB ------------------------------------------------------------------------------------------------------------


def of_duckdb(request: Json) -> Json:
    """Make a table of each input, lock DuckDB, and run the statements."""
    import duckdb

    with duckdb.connect(":memory:") as database:
        threads = max(1, min(MAX_THREADS, len(os.sched_getaffinity(0))))
        memory = f"memory_limit = '{request['memory']}B'"
        database.execute(f"SET {memory}; SET temp_directory = ''; SET threads = {threads}")
        for table, value in request["values"].items():
            create(database, "TABLE", table, table_of(value))
        sources = {path: plain_name(number, path) for number, (_, path) in enumerate(request["files"])}
        database.execute("SET allowed_paths = $paths", {"paths": [*sources.values()]})
        found = list[tuple[str, str, str]]()
        known = set[str]()
        for number, (table, path) in enumerate(request["files"]):
            originals = load(database, number, table, path, sources[path], request)
            if "samples" in request:
                made = set(names(database)) - known
                found += [
                    (name, originals.get(name) or definition(database, name, request), path) for name in made
                ]
                known |= made
        for lock in DUCKDB_LOCKS:
            database.execute(f"SET {lock}")
        if "samples" in request:
            return described(database, sorted(found), request)
        return answer(database, request)


def load(database: Any, number: int, table: str, path: str, source: str, request: Json) -> dict[str, str]:
    """Make the tables of a file; return the definitions that it has of them itself."""
    if ending(path) in READERS:
        read = f"{READERS[ending(path)]}({text(source)}, hive_partitioning = false)"
        create(database, "VIEW", table, read)
    elif ending(path) in WORKBOOKS:
        load_workbook(database, table, path)
    elif is_sqlite(path):
        load_sqlite(database, path)
    else:
        originals = attach(database, f"file{number}", path, [] if "samples" in request else request["tables"])
        # Defaults, checks and categories hold values.
        return originals if request.get("samples") else {}
    return {}


def plain_name(number: int, path: str) -> str:
    """Return a path whose name DuckDB does not take for a pattern, to which a file is copied if need be."""
    if ending(path) not in READERS or not PATTERN.search(path):
        return os.path.abspath(path)
    folder = tempfile.mkdtemp()
    suffix = ".gz" if path.lower().endswith(".gz") else ""
    return shutil.copyfile(path, os.path.join(folder, f"file{number}.{ending(path)}{suffix}"))


def answer(database: Any, request: Json) -> Json:
    """Run all statements if all of them only read; return the rows of the last one."""
    statements = database.extract_statements(request["sql"])
    for statement in statements:
        if statement.type.name not in DUCKDB_READS:
            raise RefusedError(statement.type.name)
    for statement in statements:
        database.execute(statement)
    return rows_of(database, request["rows"]) if statements else {"columns": [], "rows": [], "more": False}


def create(database: Any, kind: str, table: str, source: str) -> None:
    """Create a table or a view.

    Raises:
        DuplicateError: Its name is taken.
    """
    if table.lower() in map(str.lower, names(database)):
        raise DuplicateError(table)
    database.execute(f"CREATE {kind} {quoted(table)} AS FROM {source}")


def table_of(value: Any) -> str:
    """Return a value as a table: a list of dicts has columns; anything else is in a column `value`."""
    rows = value if isinstance(value, list) else [value]
    if not rows:
        return "(SELECT NULL AS value WHERE false)"
    if not all(isinstance(row, dict) and row for row in rows):
        rows = [{"value": row} for row in rows]
    with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
        json.dump(rows, file)
    return f"read_json({text(file.name)}, format = 'array')"


def names(database: Any) -> list[str]:
    """Return the names of the tables and views."""
    return [name for (name,) in database.execute("SHOW TABLES").fetchall()]


def definition(database: Any, table: str, request: Json) -> str:
    """Return the names and types of a table's columns, without the values of categories if no data is shown."""
    columns = database.execute(f"DESCRIBE {quoted(table)}").fetchall()
    columns = [(name, kind if request["samples"] else kind.partition("(")[0]) for name, kind, *_ in columns]
    return f"CREATE TABLE {quoted(table)} ({', '.join(f'{quoted(name)} {kind}' for name, kind in columns)})"


def attach(database: Any, name: str, path: str, tables: list[str]) -> dict[str, str]:
    """Make the tables of a file of DuckDB available: of those that are named a copy, which holds nothing else.

    Returns:
        Their definitions.
    """
    database.execute(f"ATTACH {text(path)} AS {name} (READ_ONLY)")
    wanted = {table.lower() for table in tables}
    originals = dict(database.execute(DUCKDB_TABLES, {"name": name}).fetchall())
    for table in originals:
        if not wanted or table.lower() in wanted:
            create(database, "TABLE" if wanted else "VIEW", table, f"{name}.main.{quoted(table)}")
    if wanted:
        database.execute(f"DETACH {name}")
    return originals


def load_sqlite(database: Any, path: str) -> None:
    """Copy the tables and views of a file of SQLite; columns of dates and times are these if all their values are."""
    with closing(opened(path)) as source:
        source.text_factory = lambda data: data.decode(errors="replace")
        for table, *_ in source.execute(SQLITE_TABLES).fetchall():
            try:
                cursor = source.execute(f"SELECT * FROM {quoted(table)}")  # noqa: S608
                load_rows(database, table, [column[0] for column in cursor.description], cursor)
            except sqlite3.Error as error:  # Such as a view of a table that is gone.
                kind = f"SELECT 'cannot be read: {type(error).__name__}' AS problem"
                create(database, "VIEW", table, f"({kind})")
                continue
            for _, column, declared, *_ in source.execute(f"PRAGMA table_info({quoted(table)})").fetchall():
                if "DATE" in declared.upper() or "TIME" in declared.upper():
                    convert_times(database, quoted(table), quoted(column))


def convert_times(database: Any, table: str, column: str) -> None:
    """Give a column of text the type of the dates or times that it holds."""
    # What has an offset from UTC is no local time.
    is_time = f"TRY_CAST({column} AS TIMESTAMP) IS NOT NULL AND NOT regexp_matches({column}, '(Z|[+-]\\d\\d:?\\d\\d)$')"
    facts = f"bool_and({is_time}), bool_and(length({column}) = 10)"
    try:
        query = f"SELECT {facts} FROM {table} WHERE {column} IS NOT NULL"  # noqa: S608
        are_times, are_dates = database.execute(query).fetchone()
    except Exception:  # It holds numbers.
        return
    if are_times:
        database.execute(f"ALTER TABLE {table} ALTER {column} TYPE {'DATE' if are_dates else 'TIMESTAMP'}")


def load_workbook(database: Any, table: str, path: str) -> None:
    """Copy the sheets of a workbook, whose first row with a value names the columns."""
    import openpyxl

    book = openpyxl.load_workbook(path, read_only=True, data_only=True)
    sheets = []
    for sheet in book.worksheets:
        rows = (row for row in sheet.iter_rows(values_only=True) if any(cell is not None for cell in row))
        if (head := next(rows, None)) is not None:
            sheets.append((sheet.title, head, rows))
    for title, head, rows in sheets:
        name = table if len(sheets) == 1 else re.sub(r"\W", "_", f"{table}_{title}")
        load_rows(database, name, unique(head), rows)


def unique(names: Iterable[Any]) -> list[str]:
    """Return names of columns, of which empty ones and repeated ones get a number."""
    found, taken = list[str](), set[str]()
    for number, name in enumerate(names, 1):
        wanted = str(name).strip() if name is not None else "column"
        found.append(f"{wanted}_{number}" if name is None or wanted.lower() in taken else wanted)
        taken.add(found[-1].lower())
    return found


def load_rows(database: Any, table: str, columns: list[str], rows: Iterable[Iterable[Any]]) -> None:
    """Create a table of rows, whose columns have the types of their values."""
    types: list[set[type]] = [set() for _ in columns]
    with tempfile.NamedTemporaryFile("w", suffix=".json") as file:
        for row in rows:
            cells = dict.fromkeys(range(len(columns)))
            for number, value in enumerate(itertools.islice(row, len(columns))):
                cells[number] = cell(value)
                is_long = isinstance(value, int) and not -(1 << 63) <= value < 1 << 63
                types[number].add(str if is_long else type(value))
            file.write(json.dumps(cells) + "\n")
        file.flush()
        kinds = ", ".join(f"'{number}': '{column_type(known)}'" for number, known in enumerate(types))
        names = ", ".join(f'"{number}" AS {quoted(name)}' for number, name in enumerate(columns))
        source = f"read_json({text(file.name)}, format = 'newline_delimited', columns = {{{kinds}}})"
        create(database, "TABLE", table, f"(SELECT {names} FROM {source})")  # noqa: S608


def column_type(types: set[type]) -> str:
    """Return the type of a column with cells of these types."""
    known = types - {type(None)}
    return next((name for kinds, name in COLUMN_TYPES if known and known <= kinds), "VARCHAR")


# -- both --------------------------------------------------------------------------------------------------------------


def described(database: Any, found: list[Any], request: Json) -> Json:
    """Return name, file and definition of the tables and their first rows, of which each is a line of JSON.

    A view may be without an end: it costs itself alone.
    """
    wanted = {name.lower() for name in request["tables"]}
    tables = [[name, path, str(sql)] for name, sql, path in found if not wanted or name.lower() in wanted]
    for table in tables if request["samples"] else ():
        try:
            query = f"SELECT * FROM {quoted(table[0])} LIMIT {request['samples']}"  # noqa: S608
            clock = threading.Timer(SAMPLE_SECONDS, database.interrupt)
            clock.start()
            sample = rows_of(database.execute(query), 100)
        except Exception as error:
            table.append(f"(cannot be read: {type(error).__name__})")
            continue
        finally:
            clock.cancel()
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
    """Return a value as JSON: a decimal with its digits, and what is none of Python's as text."""
    if isinstance(value, bytes):
        return value.hex()
    if isinstance(value, float) and not math.isfinite(value):
        return str(value)
    if type(value).__name__ == "Decimal":
        return {"decimal": str(value)}
    if isinstance(value, dict):
        return {"struct": {str(name): cell(one) for name, one in value.items()}}
    if isinstance(value, list | tuple):
        return [cell(one) for one in value]
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def shown(value: Any) -> Any:
    """Return a value of a sample, cut."""
    value = value.get("decimal", str(value)) if isinstance(value, dict) else value
    return value[:MAX_CELL_CHARS] if isinstance(value, str) else value


def ending(path: str) -> str:
    """Return what the name of a file ends with, but for compression."""
    return re.sub(r"\.gz$", "", path.lower()).rpartition(".")[2]


def is_sqlite(path: str) -> bool:
    """Return whether a file is of SQLite."""
    with open(path, "rb") as file:
        return file.read(len(SQLITE_MAGIC)) == SQLITE_MAGIC


def quoted(name: str) -> str:
    """Return an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """Return an SQL string literal."""
    return "'" + value.replace("'", "''") + "'"


if __name__ == "__main__":
    main(globals()["request"])
