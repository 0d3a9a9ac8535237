"""The program that answers SQL inside a box: tables from files and values, DuckDB locked, one line of JSON printed.

It is not imported but run as a program by the place that `SqlExecutor` was given, with a variable `request`. DuckDB and
the standard library are all it needs. The box is the boundary; DuckDB is locked as well, so that there are two.

A request has `files` {table: path}, `values` {table: JSON value}, `sql`, `rows` (the most that are shown) and `memory`.
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
READING = ("SELECT", "EXPLAIN", "MULTI")  # MULTI is what PIVOT becomes.
LOCKS = (
    "enable_external_access = false",
    "autoinstall_known_extensions = false",
    "autoload_known_extensions = false",
    "allow_community_extensions = false",
    "python_enable_replacements = false",
    "lock_configuration = true",
)


def main(request: Json) -> None:
    """Answer the request on standard output."""
    import duckdb

    try:
        with duckdb.connect(":memory:") as database:
            prepare(database, request)
            found = answer(database, request)
    except duckdb.OutOfMemoryException as error:
        raise MemoryError from error
    except (duckdb.Error, TypeError, ValueError) as error:  # The latter two for what is no text.
        found = {"error": {"type": type(error).__name__, "message": str(error)}}
    sys.stdout.write(json.dumps(found))


def prepare(database: Any, request: Json) -> None:
    """Make a table of everything that was given, then close the way to everything else."""
    database.execute(f"SET memory_limit = '{request['memory']}B'; SET temp_directory = ''; SET threads = {threads()}")
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
    """A value as a table: a list of dicts is one already; anything else becomes one with the column `value`."""
    rows = value if isinstance(value, list) else [value]
    if not rows:
        return "(SELECT NULL AS value WHERE false)"
    if not all(isinstance(row, dict) and row for row in rows):
        rows = [{"value": row} for row in rows]
    with tempfile.NamedTemporaryFile("w", suffix=".json", delete=False) as file:
        json.dump(rows, file)
    return f"read_json({text(file.name)}, format = 'array')"


def answer(database: Any, request: Json) -> Json:
    """Run all statements if all of them only read; what the last one gives."""
    statements = database.extract_statements(request["sql"])
    for statement in statements:
        if statement.type.name not in READING:
            return {"refused": statement.type.name}
    for statement in statements:
        database.execute(statement)
    if not statements:
        return {"columns": [], "rows": [], "more": False}
    rows = database.fetchmany(request["rows"] + 1)
    shown = [[cell(value) for value in row] for row in rows[: request["rows"]]]
    return {"columns": [column[0] for column in database.description], "rows": shown, "more": len(rows) > len(shown)}


def cell(value: Any) -> Any:
    """A value as JSON; what JSON lacks becomes text."""
    return value if isinstance(value, str | int | float | bool | None) else str(value)


def quoted(name: str) -> str:
    """A name as SQL writes it."""
    return '"' + name.replace('"', '""') + '"'


def text(value: str) -> str:
    """A text as SQL writes it."""
    return "'" + value.replace("'", "''") + "'"


def threads() -> int:
    """Threads for DuckDB: a few, since every one takes memory."""
    return max(1, min(4, len(os.sched_getaffinity(0))))


if __name__ == "__main__":
    main(globals()["request"])
