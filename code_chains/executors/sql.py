"""SQL over files, variables and databases: a program in another executor reads them."""

from __future__ import annotations

import csv
import dataclasses
import io
import json
import re
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from datetime import date, time, timedelta
from decimal import Decimal
from functools import cache, cached_property, partial
from pathlib import Path, PurePosixPath
from typing import Any, NamedTuple

from code_chains.errors import EXECUTOR_CLOSED, ConfigurationError, ExecutorError, InputError, check_int
from code_chains.executors.base import Executor
from code_chains.executors.guest.untrusted import parse
from code_chains.executors.inputs import check_code, files_on_disk
from code_chains.executors.limits import Limits
from code_chains.executors.remote.external import load_extra
from code_chains.executors.runner import Program
from code_chains.executors.sandbox.executor import SandboxExecutor
from code_chains.executors.sql_program import DATABASES, READERS, WORKBOOKS
from code_chains.executors.values import VALUE_TYPE, check_json_variables, check_variables, pack_value
from code_chains.executors.waiting import Blocking, Operation
from code_chains.records import Artifact, DisplayData, ErrorReport, Execution
from code_chains.records.printable import strip_control_chars
from code_chains.temporary import process_folder

PROGRAM_FILE = Path(__file__).with_name("sql_program.py")
SUFFIXES = (*READERS, *WORKBOOKS, *DATABASES)
_KINDS = (str, int, float, date, time, timedelta, bytes)
FRAME_LIBRARIES = ("pandas", "polars", "pyarrow")
MAX_ALIGNED_CHARS = 40
"""Columns are aligned up to this width."""
MAX_MESSAGE_CHARS, MAX_SCHEMA_CHARS = 2000, 8000
MAX_SHOWN_CHARS = 200
MAX_NAMES_CHARS = 4_000_000
"""Characters of the names of columns in a value, which has them in each row."""


class QueryExecutor(Executor):
    """Runs statements by a program that reads their tables in another executor; what both executors of SQL are built on.

    Args:
        limits: Limits of one run.
        executor: Runs the program.
        max_rows: Maximum rows of a result.
    """

    language = "sql"
    returns_values = True
    _preload: tuple[str, ...] = ("duckdb",)

    def __init__(self, limits: Limits | None, executor: Executor | None, max_rows: int) -> None:
        if executor is not None and limits is not None:
            raise ConfigurationError("limits", limits, "limits to the executor instead, or no executor")
        super().__init__(limits=executor.limits if executor else limits)
        self.max_rows: int = check_int("max_rows", max_rows, "a whole number of rows, at least 1", minimum=1)
        self._given = executor
        self._code = PROGRAM_FILE.read_text(encoding="utf-8")
        self._is_closed = False

    @cached_property
    def _executor(self) -> Executor:
        """The executor that runs the program; a sandbox of its own unless one was given."""
        return self._given or SandboxExecutor(limits=self.limits, preload=self._preload)

    def _prepared(self, program: Program) -> AbstractContextManager[Program]:
        """Return the program that runs statements, with the files that it needs.

        Raises:
            InputError: A file or variable cannot be read.
        """
        raise NotImplementedError

    def _operation(self, program: Program) -> Operation[Execution]:
        self._check_open()
        prepared = self._prepared(program)
        inner = yield Blocking(prepared.__enter__)
        try:
            execution = yield from self._executor.operation_of(inner)
        finally:
            prepared.__exit__(None, None, None)
        translate = partial(
            sql_execution, execution, self.limits.output_bytes, return_value=program.return_value
        )
        translated: Execution = yield Blocking(translate)  # Many rows take long.
        return translated

    def _inner(self, request: Mapping[str, Any], files: Mapping[str, Path]) -> Program:
        """Return the program with a request."""
        memory = self.limits.memory_bytes * 3 // 4
        common = {"tables": [], "files": [], "values": {}, "rows": self.max_rows, "memory": memory}
        return Program(self._code, files, {"request": {**common, **request}})

    def _check_open(self) -> None:
        if self._is_closed:
            raise ExecutorError(EXECUTOR_CLOSED)

    def warm_up(self) -> None:
        """Warm up the executor of the program."""
        self._executor.warm_up()

    def check_capacity(self) -> None:
        """Raise if the executor of the program would refuse a run now."""
        self._executor.check_capacity()

    def close(self) -> None:
        """Refuse further runs; close the executor of the program unless it was passed as an argument."""
        self._is_closed = True
        if self._given is None and "_executor" in vars(self):
            self._executor.close()


class SqlExecutor(QueryExecutor):
    """Run SQL in DuckDB's dialect over the files and variables of the run. Nothing can be changed.

    Each file (CSV, TSV, Parquet, JSON, JSON lines; also with `.gz`) is a table named after it without its
    suffix, each variable a table of its name: a list of dicts, or a frame of pandas, polars or pyarrow, has
    columns; any other value is in a column `value`. A file of SQLite or DuckDB has its own tables; a workbook is one
    table, or one for each sheet, `book_sheet`. All statements must be read-only (SELECT, WITH, PIVOT,
    DESCRIBE, SUMMARIZE, EXPLAIN); the rows of the last one are the result, as text and as the artifact
    `result.csv`. With `return_value=True` the value of one cell is that of the run, of one column a list, and of more
    a list of dicts.

    DuckDB runs as a program in another executor: by default the sandbox, whose limits and isolation apply.
    Inside it DuckDB is locked as well: no other file, no network, no extensions, no settings. Files of SQLite and
    workbooks are copied for each run: `DatabaseExecutor` reads a large database where it is, and one on a server.

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

    guidance = (
        "Write SQL in DuckDB's dialect that only reads: SELECT, WITH, PIVOT, DESCRIBE, SUMMARIZE. Steps go into WITH;"
        " of several statements the last one's rows are shown. Each file is a table named after it without its ending,"
        " e.g. `sales.csv` is `sales`, with _ for every character that is no letter or digit, and behind a reserved word"
        " (`table.csv` is `table_`); a database has its own"
        " tables, and a workbook of several sheets one for each, e.g. `book_sheet`. Each variable is a table"
        " of its name; a value that is not a list of records is in its column `value`."
    )

    def __init__(
        self, *, limits: Limits | None = None, executor: Executor | None = None, max_rows: int = 1000
    ) -> None:
        super().__init__(limits, executor, max_rows)
        load_extra("duckdb", "sql")

    @contextmanager
    def _prepared(self, program: Program) -> Iterator[Program]:
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
            for name, frame in frames.items():
                paths[f"{name}.parquet"] = _as_parquet(name, frame, Path(folder))
            yield self._inner({"sql": code, "files": tables, "values": values}, paths)

    def describe_files(self, files: Mapping[str, Path], samples: int) -> dict[str, str]:
        """Return the tables of each file, with so many rows of each; nothing of files that cannot be read."""
        with self._prepared(Program("", files)) as program:
            request = {**(program.variables or {})["request"], "samples": samples}
            execution = self._executor.run(self._code, files=program.files, variables={"request": request})
        outcome = outcome_of(execution)
        if isinstance(outcome, Execution) or "tables" not in outcome:
            return {}
        texts: dict[str, list[str]] = {}
        for _, file, definition, *rows in outcome["tables"]:
            lines = [f"  {definition}", *(f"    {row}" for row in rows)]
            texts.setdefault(file, [f"- file `{file}`"]).extend(lines)
        return {
            file: strip_control_chars("\n".join(lines)[:MAX_SCHEMA_CHARS]) for file, lines in texts.items()
        }


def _is_frame(value: object) -> bool:
    return type(value).__module__.partition(".")[0] in FRAME_LIBRARIES


def _table_name(name: str) -> str:
    """Return the name of a file's table: `data/sales-2024.csv.gz` is `sales_2024`."""
    stem, _, suffix = re.sub(r"\.gz$", "", PurePosixPath(name).name, flags=re.IGNORECASE).rpartition(".")
    if suffix.lower() not in SUFFIXES or not stem:
        raise InputError(
            f"The file {name!r} is not a table that SQL can read. Pass one of {', '.join(SUFFIXES)}."
        )
    table = re.sub(r"\W", "_", stem)
    # A reserved word, such as table or order, would need quotation marks in each statement.
    return f"_{table}" if table[0].isdigit() else f"{table}_" if table.lower() in _reserved() else table


@cache
def _reserved() -> frozenset[str]:
    import duckdb

    query = "SELECT keyword_name FROM duckdb_keywords() WHERE keyword_category = 'reserved'"
    with duckdb.connect(":memory:") as database:
        return frozenset(name for (name,) in database.execute(query).fetchall())


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


def sql_execution(execution: Execution, max_bytes: int, *, return_value: bool = False) -> Execution:
    """Translate the execution of the program in the sandbox to that of the statements.

    Raises:
        InputError: Two tables have the same name.
        ExecutorError: The program failed, or what it printed is malformed.
    """
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
    if "duplicate" in outcome:
        raise InputError(f"Two tables would be called {outcome['duplicate']!r}. Rename a file or a variable.")
    if "error" in outcome:
        return dataclasses.replace(execution, status="error", error=_report(**outcome["error"]))
    return with_table(execution, Rows.of(outcome), max_bytes, return_value=return_value)


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
        message = (
            "The database needed more memory. DatabaseExecutor reads a file of SQLite or DuckDB where it is."
        )
        return dataclasses.replace(ended, error=ErrorReport("MemoryLimit", message))
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
        wanted = "openpyxl" if "openpyxl" in error.message else "duckdb and pytz"
        return ExecutorError(f"The executor cannot run SQL: {error.message}. Install {wanted} there.")
    return ExecutorError(f"The program that runs SQL failed: {error}.")


def _report(type: str, message: str) -> ErrorReport:  # noqa: A002 - the name in the record
    line = re.search(r"^LINE (\d+):", message, re.MULTILINE)
    return ErrorReport(type, message[:MAX_MESSAGE_CHARS], int(line[1]) if line else None)


class Rows(NamedTuple):
    """The rows of a statement.

    Attributes:
        columns: Their names.
        rows: As many as were asked for.
        has_more: Whether there are more.
    """

    columns: list[str]
    rows: list[tuple[Any, ...]]
    has_more: bool

    @classmethod
    def of(cls, outcome: Mapping[str, Any]) -> Rows:
        """Return what the program in the sandbox printed."""
        rows = [tuple(map(_decoded, row)) for row in outcome["rows"]]
        return cls(outcome["columns"], rows, bool(outcome["more"]))

    def value(self) -> Any:
        """Return the value of one cell, of one column a list, and of more a list of dicts."""
        if len(self.columns) > 1:
            return [dict(zip(self.columns, map(plain, row), strict=True)) for row in self.rows]
        cells = [plain(cell) for (cell,) in self.rows]
        return cells[0] if len(cells) == 1 else cells


def _decoded(cell: Any) -> Any:
    if isinstance(cell, list):
        return list(map(_decoded, cell))
    if not isinstance(cell, dict):
        return cell
    if "decimal" in cell:
        return Decimal(cell["decimal"])
    return {name: _decoded(value) for name, value in cell["struct"].items()}


def plain(value: Any) -> Any:
    """Return a value as a program receives it: what no type of Python's own holds becomes text."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, list):
        return list(map(plain, value))
    if isinstance(value, dict):
        return {str(name): plain(one) for name, one in value.items()}
    return value if isinstance(value, _KINDS) or value is None else str(value)


def with_table(execution: Execution, found: Rows, max_bytes: int, *, return_value: bool = False) -> Execution:
    """Return an execution with rows as its result and as the artifact `result.csv`, and their value if it is wanted."""
    if not found.columns:
        return execution
    sheet = io.StringIO()
    csv.writer(sheet, lineterminator="\n").writerows([found.columns, *found.rows])
    artifact = Artifact.of("result.csv", "text/csv", sheet.getvalue().encode())
    text = _table([[_cell(value) for value in row] for row in (found.columns, *found.rows)], max_bytes)
    if not found.rows:
        text += "\n(0 rows)"
    if found.has_more:
        text += f"\n… and more rows than these {len(found.rows)}"
    is_short = len(found.rows) * sum(map(len, found.columns)) <= MAX_NAMES_CHARS
    wants_value = return_value and is_short
    views = (DisplayData(VALUE_TYPE, json.dumps(pack_value("value", found.value()))),) if wants_value else ()
    return dataclasses.replace(
        execution, result=text, artifacts=(artifact,), display_data=views, truncated=found.has_more
    )


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
