"""SQL over files and variables: DuckDB, run as a program in another executor."""

from __future__ import annotations

import csv
import dataclasses
import io
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path, PurePosixPath
from typing import Any

from code_chains.errors import EXECUTOR_CLOSED, ConfigurationError, ExecutorError, InputError, check_int
from code_chains.executors.base import Executor
from code_chains.executors.guest.untrusted import parse
from code_chains.executors.inputs import check_code, files_on_disk
from code_chains.executors.limits import Limits
from code_chains.executors.remote.external import load_extra
from code_chains.executors.runner import Program
from code_chains.executors.sandbox.executor import SandboxExecutor
from code_chains.executors.sql_program import READERS
from code_chains.executors.values import check_json_variables, check_variables
from code_chains.executors.waiting import Blocking, Operation
from code_chains.records import Artifact, ErrorReport, Execution
from code_chains.temporary import process_folder

PROGRAM_FILE = Path(__file__).with_name("sql_program.py")
FRAME_LIBRARIES = ("pandas", "polars", "pyarrow")
MAX_ALIGNED_CHARS = 40
"""Columns are aligned up to this width."""
MAX_MESSAGE_CHARS = 2000
MAX_SHOWN_CHARS = 200


class SqlExecutor(Executor):
    """Run SQL in DuckDB's dialect over the files and variables of the run. Nothing can be changed.

    Each file (CSV, TSV, Parquet, JSON, JSON lines; also with `.gz`) is a table named after it without its
    suffix, each variable a table of its name: a list of dicts, or a frame of pandas, polars or pyarrow, has
    columns; any other value is in a column `value`. All statements must be read-only (SELECT, WITH, PIVOT,
    DESCRIBE, SUMMARIZE, EXPLAIN); the rows of the last one are the result, as text and as the artifact
    `result.csv`.

    DuckDB runs as a program in another executor: by default the sandbox, whose limits and isolation apply.
    Inside it DuckDB is locked as well: no other file, no network, no extensions, no settings.

    Args:
        limits: Limits of one run.
        executor: Runs DuckDB: any Python executor that can import it. It is not closed with this one.
        max_rows: Maximum rows of a result; `Execution.truncated` tells whether there were more.

    Raises:
        ConfigurationError: An argument is invalid, or DuckDB is not installed.

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
        " of its name; a value that is not a list of records is in its column `value`."
    )

    def __init__(
        self, *, limits: Limits | None = None, executor: Executor | None = None, max_rows: int = 1000
    ) -> None:
        if executor is not None and limits is not None:
            raise ConfigurationError("limits", limits, "limits to the executor instead, or no executor")
        check_int("max_rows", max_rows, "a whole number of rows, at least 1", minimum=1)
        super().__init__(limits=executor.limits if executor else limits)
        load_extra("duckdb", "sql")
        self.max_rows = max_rows
        self._owns_executor = executor is None
        self._executor = executor or SandboxExecutor(limits=self.limits, preload=("duckdb",))
        self._code = PROGRAM_FILE.read_text(encoding="utf-8")
        self._is_closed = False

    def _operation(self, program: Program) -> Operation[Execution]:
        prepared = self._prepared(program)
        request, paths = yield Blocking(prepared.__enter__)
        try:
            execution = yield from self._executor.operation_of(
                Program(self._code, paths, {"request": request})
            )
        finally:
            prepared.__exit__(None, None, None)
        return sql_execution(execution, self.limits.output_bytes)

    def warm_up(self) -> None:
        """Warm up the executor of DuckDB."""
        self._executor.warm_up()

    def check_capacity(self) -> None:
        """Raise if the executor of DuckDB would refuse a run now."""
        self._executor.check_capacity()

    def close(self) -> None:
        """Refuse further runs; close the executor of DuckDB unless it was passed as an argument."""
        self._is_closed = True
        if self._owns_executor:
            self._executor.close()

    @contextmanager
    def _prepared(self, program: Program) -> Iterator[tuple[dict[str, Any], dict[str, Path]]]:
        """Yield the request to the program in the sandbox, and the files that it needs."""
        if self._is_closed:
            raise ExecutorError(EXECUTOR_CLOSED)
        code, variables = check_code(program.code), dict(program.variables or {})
        frames = {name: value for name, value in variables.items() if _is_frame(value)}
        values = check_json_variables(
            {name: value for name, value in variables.items() if name not in frames}, tuples=True
        )
        check_variables(dict.fromkeys(frames))  # Validates their names.
        with (
            files_on_disk(program.files) as paths,
            tempfile.TemporaryDirectory(dir=process_folder()) as folder,
        ):
            tables = [(_table_name(name), name) for name in paths]
            tables += [(name, f"{name}.parquet") for name in frames]
            _check_unique([*(table for table, _ in tables), *values])
            for name, frame in frames.items():
                paths[f"{name}.parquet"] = _as_parquet(name, frame, Path(folder))
            request = {
                "sql": code,
                "files": dict(tables),
                "values": values,
                "rows": self.max_rows,
                "memory": self.limits.memory_bytes * 3 // 4,
            }
            yield request, paths


def _is_frame(value: object) -> bool:
    return type(value).__module__.partition(".")[0] in FRAME_LIBRARIES


def _table_name(name: str) -> str:
    """Return the name of a file's table: `data/sales-2024.csv.gz` is `sales_2024`."""
    stem, _, suffix = re.sub(r"\.gz$", "", PurePosixPath(name).name, flags=re.IGNORECASE).rpartition(".")
    if suffix.lower() not in READERS or not stem:
        raise InputError(
            f"The file {name!r} is not a table that SQL can read. Pass one of {', '.join(READERS)}."
        )
    table = re.sub(r"\W", "_", stem)
    return f"_{table}" if table[0].isdigit() else table


def _check_unique(names: Sequence[str]) -> None:
    lower = [name.lower() for name in names]
    if duplicates := [name for name in names if lower.count(name.lower()) > 1]:
        raise InputError(f"Two tables would be called {duplicates[0]!r}. Rename a file or a variable.")


def _as_parquet(name: str, frame: object, folder: Path) -> Path:
    """Write a frame to a file with DuckDB, on this side."""
    import duckdb

    path = folder / f"{name}.parquet"
    try:
        with duckdb.connect(":memory:") as database:
            database.register("frame", frame)
            database.sql("FROM frame").write_parquet(str(path))
    except (duckdb.Error, ImportError, TypeError, ValueError) as error:
        raise InputError(f"The frame {name!r} cannot be made a table: {error}.") from error
    return path


def sql_execution(execution: Execution, max_bytes: int) -> Execution:
    """Translate the execution of the program in the sandbox to that of the statements."""
    outcome = outcome_of(execution)
    if isinstance(outcome, Execution):
        return outcome
    execution = dataclasses.replace(execution, stdout="", stderr="", result=None)
    if "refused" in outcome:
        message = (
            f"Nothing was run: {outcome['refused']} is not allowed. Only read: SELECT, WITH, PIVOT, DESCRIBE."
        )
        return dataclasses.replace(
            execution, status="refused", error=ErrorReport("Refused", message), isolation=None
        )
    if "error" in outcome:
        return dataclasses.replace(execution, status="error", error=_report(**outcome["error"]))
    return with_table(execution, outcome, max_bytes)


def outcome_of(execution: Execution) -> dict[str, Any] | Execution:
    """Return what the program in the sandbox printed, or the execution of the statements if it did not end.

    Raises:
        ExecutorError: The program failed, or what it printed is malformed.
    """
    if execution.status == "error":
        raise _program_error(execution.error)
    if not execution.ok:
        ended = dataclasses.replace(execution, stdout="", stderr="", result=None)
        if execution.status != "memory":
            return ended
        return dataclasses.replace(
            ended, error=ErrorReport("MemoryLimit", "The database needed more memory.")
        )
    try:
        outcome: dict[str, Any] = parse(execution.stdout.encode(errors="replace"))
    except ValueError as error:
        raise ExecutorError(
            f"The output of the database's program is malformed: {execution.stdout[:MAX_SHOWN_CHARS]!r}."
        ) from error
    return outcome


def _program_error(error: ErrorReport | None) -> ExecutorError:
    """Return the exception for an error of the program in the sandbox, which no statement can cause."""
    if error is not None and error.type == "ModuleNotFoundError":
        return ExecutorError(
            f"The executor cannot run DuckDB: {error.message}. Install duckdb and pytz there."
        )
    return ExecutorError(f"The program that runs DuckDB failed: {error}.")


def _report(type: str, message: str) -> ErrorReport:  # noqa: A002 - the name in the record
    line = re.search(r"^LINE (\d+):", message, re.MULTILINE)
    return ErrorReport(type, message[:MAX_MESSAGE_CHARS], int(line[1]) if line else None)


def with_table(execution: Execution, outcome: Mapping[str, Any], max_bytes: int) -> Execution:
    """Return an execution with rows as its result and as the artifact `result.csv`."""
    columns, rows, has_more = outcome["columns"], outcome["rows"], bool(outcome["more"])
    if not columns:
        return execution
    sheet = io.StringIO()
    csv.writer(sheet, lineterminator="\n").writerows([columns, *rows])
    artifact = Artifact.of("result.csv", "text/csv", sheet.getvalue().encode())
    text = _table([[_cell(value) for value in row] for row in (columns, *rows)], max_bytes)
    if not rows:
        text += "\n(0 rows)"
    if has_more:
        text += f"\n… and more rows than these {len(rows)}"
    return dataclasses.replace(execution, result=text, artifacts=(artifact,), truncated=has_more)


def _table(rows: Sequence[Sequence[str]], max_bytes: int) -> str:
    """Return rows as text below the first one, aligned if that takes at most `max_bytes`."""
    widths = [min(MAX_ALIGNED_CHARS, max(map(len, column))) for column in zip(*rows, strict=True)]
    lines = [rows[0], ["-" * width for width in widths], *rows[1:]]
    aligned = "\n".join(" | ".join(map(str.ljust, line, widths)).rstrip() for line in lines)
    return aligned if len(aligned.encode()) <= max_bytes else "\n".join(map(" | ".join, lines))


def _cell(value: object) -> str:
    """Return a value as SQL writes it, on one line."""
    if isinstance(value, bool | None):
        return {True: "true", False: "false", None: "NULL"}[value]
    return str(value).replace("\n", "\\n")
