"""SQL over given files and tables: DuckDB, run as a program inside another place."""

from __future__ import annotations

import asyncio
import csv
import dataclasses
import io
import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from code_chains.errors import ConfigurationError, ExecutorError, InputError
from code_chains.executors.base import Executor, Limits
from code_chains.executors.foreign import load_extra
from code_chains.executors.query import READERS
from code_chains.executors.sandbox import SandboxExecutor
from code_chains.inputs import check_files, check_variables
from code_chains.state import Artifact, ErrorReport, Execution

__all__ = ["SqlExecutor"]

PROGRAM = Path(__file__).with_name("query.py")
FRAMES = ("pandas", "polars", "pyarrow")
WIDTH = 40
"""Columns are aligned up to this many characters."""


class SqlExecutor(Executor):
    """Answers SQL, in DuckDB's dialect, over the files and variables of the run. Nothing can be changed.

    Each file (CSV, TSV, Parquet, JSON, JSON lines; also with `.gz`) is a table named after it without its ending, each
    variable one named after it: a list of dicts, or a frame of pandas, polars or pyarrow, gives its columns; any other
    value is in a column `value`. All statements must read (SELECT, WITH, PIVOT, DESCRIBE, SUMMARIZE, EXPLAIN); the last
    one's rows are the result, as text and as the artifact `result.csv`.

    DuckDB runs as a program inside another place: by default the sandbox, whose limits and isolation hold. Inside it
    DuckDB is locked as well: no file but those given, no network, no extensions, no settings.

    Args:
        limits: What one run may use.
        place: Where DuckDB runs: any executor of Python that can import it. It is not closed with this one.
        max_rows: Rows of a result that are kept; `Execution.truncated` says that there were more.

    Raises:
        ConfigurationError: An argument is wrong, or DuckDB is not installed.

    Example:
        >>> with SqlExecutor() as sql:
        ...     print(sql.run("SELECT sum(value) AS total FROM n", variables={"n": [1, 2, 3]}).output)
        total
        -----
        6
    """

    language = "sql"
    guidance = (
        "Write SQL in DuckDB's dialect that only reads: SELECT, WITH, PIVOT, DESCRIBE, SUMMARIZE. Steps go into WITH;"
        " of several statements the last one's rows are shown. Each file is a table named after it without its ending,"
        " e.g. `sales.csv` is `sales`, with _ for every character that is no letter or digit. Each variable is a table"
        " of its name; a value that is no list of records is in its column `value`."
    )

    def __init__(self, *, limits: Limits | None = None, place: Executor | None = None, max_rows: int = 1000) -> None:
        if place is not None and limits is not None:
            raise ConfigurationError("limits", limits, "limits to the place, or no place")
        if isinstance(max_rows, bool) or not isinstance(max_rows, int) or max_rows < 1:
            raise ConfigurationError("max_rows", max_rows, "a whole number of rows, at least 1")
        super().__init__(limits=place.limits if place else limits)
        load_extra("duckdb", "sql")
        self.max_rows = max_rows
        self._own = place is None
        self._place = place or SandboxExecutor(limits=self.limits, preload=("duckdb",))
        self._program = PROGRAM.read_text(encoding="utf-8")
        self._closed = False

    def run(
        self, code: str, *, files: Mapping[str, Any] | None = None, variables: Mapping[str, Any] | None = None
    ) -> Execution:
        """Run statements; see `Executor.run`. Variables may also be frames."""
        with self._prepared(code, files, variables) as (request, given):
            done = self._place.run(self._program, files=given, variables={"request": request})
        return _told(done, self.limits.output_bytes)

    async def arun(
        self, code: str, *, files: Mapping[str, Any] | None = None, variables: Mapping[str, Any] | None = None
    ) -> Execution:
        """Run statements without blocking the event loop; see `Executor.arun`."""
        prepared = self._prepared(code, files, variables)
        request, given = await asyncio.to_thread(prepared.__enter__)
        try:
            done = await self._place.arun(self._program, files=given, variables={"request": request})
        finally:
            prepared.__exit__(None, None, None)
        return _told(done, self.limits.output_bytes)

    def warm(self) -> None:
        """Let the place get ready."""
        self._place.warm()

    def check_room(self) -> None:
        """See whether the place would refuse a run now."""
        self._place.check_room()

    def close(self) -> None:
        """Refuse further runs; close the place unless it was given."""
        self._closed = True
        if self._own:
            self._place.close()

    @contextmanager
    def _prepared(
        self, code: str, files: Mapping[str, Any] | None, variables: Mapping[str, Any] | None
    ) -> Iterator[tuple[dict[str, Any], dict[str, Path]]]:
        """The request to the program inside, and the files it needs."""
        if self._closed:
            raise ExecutorError("This executor is closed. Make a new one.")
        if not isinstance(code, str):
            raise InputError(f"Code must be text, not {type(code).__name__}.")
        frames = {name: value for name, value in dict(variables or {}).items() if _is_frame(value)}
        values = check_variables({name: value for name, value in dict(variables or {}).items() if name not in frames})
        check_variables(dict.fromkeys(frames))  # Their names, that is.
        given = check_files(files)
        tables = [(_table_name(name), name) for name in given] + [(name, f"{name}.parquet") for name in frames]
        _check_unique([*(table for table, _ in tables), *values])
        with tempfile.TemporaryDirectory(prefix="code_chains-") as folder:
            for name, frame in frames.items():
                given[f"{name}.parquet"] = _as_parquet(name, frame, Path(folder))
            memory = self.limits.memory_bytes * 3 // 4
            yield {"sql": code, "files": dict(tables), "values": values, "rows": self.max_rows, "memory": memory}, given


def _is_frame(value: object) -> bool:
    return type(value).__module__.partition(".")[0] in FRAMES


def _table_name(name: str) -> str:
    """What the table of a file is called: `data/sales-2024.csv.gz` is `sales_2024`."""
    stem, _, ending = re.sub(r"\.gz$", "", PurePosixPath(name).name, flags=re.IGNORECASE).rpartition(".")
    if ending.lower() not in READERS or not stem:
        raise InputError(f"The file {name!r} is no table that SQL can read. Give one of {', '.join(READERS)}.")
    table = re.sub(r"\W", "_", stem)
    return f"_{table}" if table[0].isdigit() else table


def _check_unique(names: Sequence[str]) -> None:
    lower = [name.lower() for name in names]
    if twice := [name for name in names if lower.count(name.lower()) > 1]:
        raise InputError(f"Two tables would be called {twice[0]!r}. Rename a file or a variable.")


def _as_parquet(name: str, frame: object, folder: Path) -> Path:
    """A frame as a file, written by DuckDB on this side."""
    import duckdb

    path = folder / f"{name}.parquet"
    try:
        with duckdb.connect(":memory:") as database:
            database.register("frame", frame)
            database.sql("FROM frame").write_parquet(str(path))
    except (duckdb.Error, ImportError, TypeError, ValueError) as error:
        raise InputError(f"The frame {name!r} cannot be made a table: {error}.") from error
    return path


def _told(done: Execution, most: int) -> Execution:
    """The run of the program inside, told as the run of the statements."""
    if done.status == "error":
        raise _broken(done.error)
    if not done.ok:
        error = ErrorReport("MemoryLimit", "DuckDB needed more memory.") if done.status == "memory" else done.error
        return dataclasses.replace(done, stdout="", stderr="", result=None, error=error)
    try:
        found: dict[str, Any] = json.loads(done.stdout)
    except ValueError as error:
        raise ExecutorError(f"DuckDB's answer was not understood: {done.stdout[:200]!r}.") from error
    done = dataclasses.replace(done, stdout="", stderr="", result=None)
    if "refused" in found:
        message = f"Nothing was run: {found['refused']} is not allowed. Only read: SELECT, WITH, PIVOT, DESCRIBE."
        return dataclasses.replace(done, status="refused", error=ErrorReport("Refused", message), isolation=None)
    if "error" in found:
        return dataclasses.replace(done, status="error", error=_report(**found["error"]))
    return _with_table(done, found, most)


def _broken(error: ErrorReport | None) -> ExecutorError:
    """What an error of the program inside means: no statement can cause one."""
    if error is not None and error.type == "ModuleNotFoundError":
        return ExecutorError(f"The place cannot run DuckDB: {error.message}. Install duckdb and pytz there.")
    return ExecutorError(f"The program that asks DuckDB failed: {error}.")


def _report(type: str, message: str) -> ErrorReport:  # noqa: A002 - the name in the record
    line = re.search(r"^LINE (\d+):", message, re.MULTILINE)
    return ErrorReport(type, message[:2000], int(line[1]) if line else None)


def _with_table(done: Execution, found: Mapping[str, Any], most: int) -> Execution:
    columns, rows, more = found["columns"], found["rows"], bool(found["more"])
    if not columns:
        return done
    sheet = io.StringIO()
    csv.writer(sheet, lineterminator="\n").writerows([columns, *rows])
    artifact = Artifact("result.csv", "text/csv", sheet.getvalue().encode())
    text = _table([[_cell(value) for value in row] for row in (columns, *rows)], most)
    text += f"\n… and more rows than these {len(rows)}" if more else ""
    return dataclasses.replace(done, result=text, artifacts=(artifact,), truncated=more)


def _table(rows: Sequence[Sequence[str]], most: int) -> str:
    """Rows as text below the first one, aligned where that takes at most `most` bytes."""
    widths = [min(WIDTH, max(map(len, column))) for column in zip(*rows, strict=True)]
    lines = [rows[0], ["-" * width for width in widths], *rows[1:]]
    aligned = "\n".join(" | ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
    return aligned if len(aligned.encode()) <= most else "\n".join(map(" | ".join, lines))


def _cell(value: object) -> str:
    """A value as SQL writes it, on one line."""
    if isinstance(value, bool | None):
        return {True: "true", False: "false", None: "NULL"}[value]
    return str(value).replace("\n", "\\n")
