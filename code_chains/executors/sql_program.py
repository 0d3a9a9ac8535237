"""The program that runs SQL inside a sandbox: tables from files and values, DuckDB locked, one line of JSON printed.

It is not imported but run as a program by the executor of `SqlExecutor`, with a variable `request`. It needs
DuckDB and the standard library alone. The sandbox is the boundary; DuckDB is locked as well, as a second one.

A request has `files` {table: path}, `values` {table: JSON value}, `sql`, `rows` (their maximum number) and
`memory`.
"""

from __future__ import annotations

import json
import os
import re
import sys
import tempfile
from typing import Any

Json = dict[str, Any]

READERS = {
    **dict.fromkeys(("csv", "tsv"), "read_csv"),
    **dict.fromkeys(("json", "jsonl", "ndjson"), "read_json"),
    "parquet": "read_parquet",
}
READ_STATEMENTS = ("SELECT", "EXPLAIN", "MULTI")  # PIVOT is parsed as MULTI.
MAX_THREADS = 4
LOCKS = (
    "enable_external_access = false",
    "autoinstall_known_extensions = false",
    "autoload_known_extensions = false",
    "allow_community_extensions = false",
    "python_enable_replacements = false",
    "lock_configuration = true",
)


def main(request: Json) -> None:
    """Run the request and print the outcome."""
    import duckdb

    try:
        with duckdb.connect(":memory:") as database:
            prepare(database, request)
            outcome = answer(database, request)
    except duckdb.OutOfMemoryException as error:
        raise MemoryError from error
    except (duckdb.Error, TypeError, ValueError) as error:  # The latter two for code that is not text.
        outcome = {"error": {"type": type(error).__name__, "message": str(error)}}
    sys.stdout.write(json.dumps(outcome))


def prepare(database: Any, request: Json) -> None:
    """Create a table for each input, then lock DuckDB."""
    database.execute(
        f"SET memory_limit = '{request['memory']}B'; SET temp_directory = ''; SET threads = {thread_count()}"
    )
    for table, value in request["values"].items():
        database.execute(f"CREATE TABLE {quoted(table)} AS FROM {table_of(value)}")
    paths = {table: os.path.abspath(path) for table, path in request["files"].items()}
    database.execute("SET allowed_paths = $paths", {"paths": list(paths.values())})
    for table, path in paths.items():
        reader = READERS[re.sub(r"\.gz$", "", path.lower()).rpartition(".")[2]]
        database.execute(f"CREATE VIEW {quoted(table)} AS FROM {reader}({text(path)})")
    for lock in LOCKS:
        database.execute(f"SET {lock}")


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


def answer(database: Any, request: Json) -> Json:
    """Run all statements if all of them only read; return the rows of the last one."""
    statements = database.extract_statements(request["sql"])
    for statement in statements:
        if statement.type.name not in READ_STATEMENTS:
            return {"refused": statement.type.name}
    for statement in statements:
        database.execute(statement)
    if not statements:
        return {"columns": [], "rows": [], "more": False}
    rows = database.fetchmany(request["rows"] + 1)
    columns = [column[0] for column in database.description]
    cells = [[cell(value) for value in row] for row in rows[: request["rows"]]]
    return {"columns": columns, "rows": cells, "more": len(rows) > len(cells)}


def cell(value: Any) -> Any:
    """Return a value as JSON; other types become text."""
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def quoted(name: str) -> str:
    """Return an SQL identifier."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """Return an SQL string literal."""
    return "'" + value.replace("'", "''") + "'"


def thread_count() -> int:
    """Return the number of DuckDB's threads: few, as each takes memory."""
    return max(1, min(MAX_THREADS, len(os.sched_getaffinity(0))))


if __name__ == "__main__":
    main(globals()["request"])
