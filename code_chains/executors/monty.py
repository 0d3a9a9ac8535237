"""Monty: an interpreter of a subset of Python, written in Rust, that runs a program in a fraction of a millisecond."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from code_chains.errors import EXECUTOR_CLOSED, ExecutorError, IsolationError
from code_chains.executors.base import Executor
from code_chains.executors.blocking_tools import blocking_functions
from code_chains.executors.inputs import check_code, files_on_disk
from code_chains.executors.limits import Limits
from code_chains.executors.outcomes import RunOutcome
from code_chains.executors.remote.external import PROBE, canary, isolation, load_extra
from code_chains.executors.runner import Program
from code_chains.executors.tool_calls import ToolCalls
from code_chains.executors.tools import open_tool_calls, read_call
from code_chains.executors.values import check_json_variables
from code_chains.executors.waiting import Operation, blocking
from code_chains.records import ErrorReport, Execution, Isolation, Status
from code_chains.temporary import process_folder

if TYPE_CHECKING:
    from pydantic_monty import Monty, MontyError, MontySession, MountDir

SUBSET_HINT = (
    "This interpreter supports a subset of Python, without libraries, inheritance or generators. Use simple code, or use the"
    " sandbox."
)
KILL = signal.SIGTERM if sys.platform == "win32" else signal.SIGKILL
"""On Windows, any signal but two ends a process at once."""
GRACE_RATIO = 0.1
"""Share of `Limits.seconds` after which a worker that does not stop is killed, and within which a program must have failed
for its variables to be read, as reading them may take as long as a program."""
WORKDIR = "/box"
MAX_REPR_CHARS = 100_000
MAX_MESSAGE_CHARS, MAX_TRACEBACK_CHARS, MAX_TRACEBACK_FRAMES = 2000, 6000, 8
MAX_VARIABLES, MAX_VALUE_CHARS = 12, 200
TOOL_ERROR = "ToolError = RuntimeError"
"""Calls of tools raise what Monty knows; it has no inheritance for an exception of its own."""
VALUE_NAME = "__shown__"
"""The name that a program's last value is bound to."""
SHOW_VALUE = f'\nNone if {VALUE_NAME} is None else f"{{{VALUE_NAME}!r}}"[:{MAX_REPR_CHARS}]'
USE_RESULT = f"\ntry:\n    {VALUE_NAME} = result if {VALUE_NAME} is None else {VALUE_NAME}\nexcept NameError:\n    pass"


class MontyExecutor(Executor):
    """Run plain Python in Monty, an interpreter without access to the machine, in a pool of processes.

    A run costs a fraction of a millisecond. Monty has numbers, text, lists, dicts, functions, simple classes
    and a few modules (`math`, `json`, `re`, `datetime` ...). Programs that it cannot parse are `refused`;
    other unsupported features are an `error`. Sleeping takes no time. `Limits.memory` limits the
    interpreter's heap.

    Args:
        limits: Limits of one run.

    Raises:
        ConfigurationError: pydantic-monty is not installed.

    Example:
        >>> with MontyExecutor() as executor:
        ...     executor.run("sum(range(1, 6))").output
        '15'
    """

    _owner_pid: ClassVar[int | None] = None
    """The process whose threads serve Monty; a process that is forked from it lacks them."""
    takes_tools = True
    guidance = (
        "Write plain Python. Of the standard library there are math, json, re, datetime, random, decimal, itertools,"
        " functools and collections; there are no other libraries. Do not use class inheritance, `yield`, `del` or"
        " globals(). Files can be read with open(), not written."
    )

    def __init__(self, *, limits: Limits | None = None) -> None:
        super().__init__(limits=limits)
        load_extra("pydantic_monty", "monty")
        self._lock = threading.Lock()
        self._started: tuple[Monty, Isolation] | None = None
        self._is_closed = False

    def _operation(self, program: Program) -> Operation[Execution]:
        output = _Output(self.limits.output_bytes)
        return blocking(partial(self._run, output, program), output.stop)

    def _open_calls(self, tools: Any, loop: asyncio.AbstractEventLoop | None) -> ToolCalls[Any] | None:
        encode = partial(_as_json, max_bytes=self.limits.tool_message_bytes)
        return open_tool_calls(tools, self.limits, encode, loop)

    def close(self) -> None:
        """End the workers and refuse further runs."""
        with self._lock:
            self._is_closed = True
            started, self._started = self._started, None
        if started and self._owner_pid == os.getpid():
            started[0].__exit__(None, None, None)

    # -- the workers -----------------------------------------------------------------------------------------

    def _pool(self) -> tuple[Monty, Isolation]:
        """Return the workers and what a probe found in them; both are created by the first run."""
        with self._lock:
            if self._is_closed:
                raise ExecutorError(EXECUTOR_CLOSED)
            if self._owner_pid not in (None, os.getpid()):
                raise ExecutorError(
                    "Monty was started before this process was forked. Fork first, or use spawn."
                )
            if self._started is None:
                MontyExecutor._owner_pid = os.getpid()
                self._started = self._start()
            return self._started

    def _start(self) -> tuple[Monty, Isolation]:
        from pydantic_monty import Monty

        printed: list[str] = []
        with contextlib.ExitStack() as stack:
            try:
                pool = stack.enter_context(Monty(feed_duration_limit_grace=GRACE_RATIO * self.limits.seconds))
                with canary() as targets, pool.checkout() as session:
                    inputs = {"canary": targets}
                    session.feed_run(
                        PROBE, inputs=inputs, print_callback=lambda _, text: printed.append(text)
                    )
            except Exception as error:
                raise ExecutorError(f"Monty could not be started: {error}.", is_retryable=True) from error
            report = isolation("interpreter", "monty", "".join(printed), targets["salt"])
            if report.open:
                raise IsolationError(
                    f"Nothing was run: inside Monty {', '.join(report.open)} was found open."
                )
            stack.pop_all()
        return pool, report

    @contextlib.contextmanager
    def _session(self, pool: Monty, run_limits: Limits) -> Iterator[MontySession]:
        limits = {
            "max_feed_duration_secs": float(run_limits.seconds),
            "max_memory": self.limits.memory_bytes,
        }
        with contextlib.ExitStack() as stack:
            try:
                session = pool.checkout(limits=limits, os_policy={"sleep": "zero"})  # type: ignore[arg-type]
                stack.enter_context(session)
            except Exception as error:
                raise ExecutorError(
                    f"Monty has no worker for this run: {error}.", is_retryable=True
                ) from error
            yield session

    # -- one run ---------------------------------------------------------------------------------------------

    def _run(self, output: _Output, program: Program) -> Execution:
        code, inputs = check_code(program.code), check_json_variables(program.variables, tuples=True)
        calls = program.tool_calls
        if calls is not None:
            calls.toolbox.check_variables(inputs)
        pool, isolation = self._pool()
        try:
            source = _Source(code, inputs)
        except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
            message = error.msg if isinstance(error, SyntaxError) else str(error)
            report = ErrorReport(type(error).__name__, message, getattr(error, "lineno", None))
            return Execution("error", error=report, isolation=isolation)
        limits = program.within(self.limits)
        with (
            files_on_disk(program.files) as files,
            _mounted(files) as mount,
            self._session(pool, limits) as session,
        ):
            started = time.monotonic()
            status, failure, result = self._outcome(session, source, output, mount, calls, limits)
            duration = time.monotonic() - started
        return Execution(
            status,
            output.text("stdout"),
            output.text("stderr"),
            result,
            failure,
            duration=duration,
            truncated=output.is_full,
            isolation=None if status == "refused" else isolation,
            tool_calls=() if calls is None else calls.records,
        )

    def _outcome(
        self,
        session: MontySession,
        source: _Source,
        output: _Output,
        mount: MountDir | None,
        calls: ToolCalls[Any] | None,
        limits: Limits,
    ) -> RunOutcome:
        """Run the program in a session; return status, error and result."""
        from pydantic_monty import MontyError

        started = time.monotonic()
        max_bytes = self.limits.tool_message_bytes
        functions = None if calls is None else blocking_functions(calls, max_bytes, read_call)
        try:
            with output.attached(session.worker_pid):
                if functions:
                    session.feed_run(TOOL_ERROR)
                result = session.feed_run(
                    source.text,
                    inputs=source.inputs,
                    print_callback=output.write,
                    mount=mount,
                    cwd=mount and WORKDIR,
                    external_lookup=functions,
                )
        except MontyError as error:
            status, report = _failure(error, source, limits, output.is_full)
            is_early = time.monotonic() - started < GRACE_RATIO * limits.seconds
            if status == "error" and is_early and report.line:
                report = _with_variables(report, session, source)
            return status, report, None
        return "ok", None, result


def _as_json(value: Any, max_bytes: int) -> Any:
    """Return what a tool returned, if it is a JSON value.

    Raises:
        InputError: It is none.
        ValueError: It is too large.
    """
    checked = check_json_variables({"result": value}, tuples=True)["result"]
    if (size := len(json.dumps(checked))) > max_bytes:
        raise ValueError(f"it takes {size:,} bytes, and {max_bytes:,} are allowed")
    return checked


class _Source:
    """A program's source for Monty: the value of its last expression is bound to a name and shown at the end.

    Args:
        code: The source.
        inputs: Its variables.
    """

    def __init__(self, code: str, inputs: dict[str, Any]) -> None:
        code = code.replace("\r\n", "\n").replace("\r", "\n")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = ast.parse(code)
        self.inputs = inputs
        self.lines = code.split("\n")
        names = [node for node in ast.walk(tree) if isinstance(node, ast.Name)]
        stored = {name.id for name in names if isinstance(name.ctx, ast.Store)}
        self.names = sorted(stored | set(inputs))
        last = tree.body[-1] if tree.body else None
        self.text = self._bind_value(last) if isinstance(last, ast.Expr) else f"{code}\n{VALUE_NAME} = None"
        if "result" in stored - set(inputs):
            self.text += USE_RESULT
        self.text += SHOW_VALUE

    def _bind_value(self, last: ast.Expr) -> str:
        """Return the source with its last expression, `a + b`, as `(__shown__ := (a + b))`."""
        value = last.value
        start = self._offset(value.lineno, value.col_offset)
        end = self._offset(value.end_lineno or 1, value.end_col_offset or 0)
        code = "\n".join(self.lines).encode()
        return b"".join(
            (code[:start], f"({VALUE_NAME} := (".encode(), code[start:end], b"))", code[end:])
        ).decode()

    def _offset(self, line: int, column: int) -> int:
        """Return the offset in bytes of a position in the syntax tree."""
        return sum(len(text.encode()) + 1 for text in self.lines[: line - 1]) + column


class _Output:
    """What a run prints, up to a limit, and the worker to kill if it prints more.

    Args:
        limit: Bytes of each stream.
    """

    def __init__(self, limit: int) -> None:
        self.is_full = False
        self._limit = limit
        self._buffers = {"stdout": bytearray(), "stderr": bytearray()}
        self._lock = threading.Lock()
        self._worker: int | None = None
        self._is_stopped = False

    def text(self, stream: str) -> str:
        return self._buffers[stream].decode(errors="replace")

    def write(self, stream: str, text: str) -> None:
        buffer, data = self._buffers[stream], text.encode(errors="replace")
        buffer += data[: self._limit - len(buffer)]
        if len(buffer) >= self._limit and not self.is_full:
            self.is_full = True
            self.stop()

    def stop(self) -> None:
        """End the program, whether it has started or not; the pool replaces the worker."""
        with self._lock:
            self._is_stopped = True
            if self._worker is not None:
                with contextlib.suppress(OSError):  # It has ended.
                    os.kill(self._worker, KILL)

    @contextlib.contextmanager
    def attached(self, worker: int | None) -> Iterator[None]:
        """Attach the worker that `stop` kills."""
        with self._lock:
            self._worker = worker
        try:
            if self._is_stopped:
                self.stop()
            yield
        finally:
            with self._lock:
                self._worker = None


@contextlib.contextmanager
def _mounted(files: Mapping[str, Path]) -> Iterator[MountDir | None]:
    """Mount copies of the files, read-only."""
    if not files:
        yield None
        return
    from pydantic_monty import MountDir

    with tempfile.TemporaryDirectory(dir=process_folder()) as folder:
        for name, path in files.items():
            target = Path(folder, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        with MountDir(host_path=folder, virtual_path=WORKDIR, mode="read-only") as mount:
            yield mount


def _failure(error: MontyError, source: _Source, limits: Limits, is_full: bool) -> tuple[Status, ErrorReport]:
    """Return status and report for an error of Monty."""
    from pydantic_monty import MontyCrashedError, MontyRuntimeError, MontySyntaxError

    if is_full:
        return "output_limit", ErrorReport("OutputLimit", f"More than {limits.output} bytes were printed.")
    timeout = ErrorReport("Timeout", f"The program did not end within {limits.seconds:g} seconds.")
    if isinstance(error, MontyCrashedError):
        return ("timeout", timeout) if error.timed_out else ("killed", ErrorReport("Killed", str(error)))
    if not isinstance(error, MontyRuntimeError | MontySyntaxError):
        return "error", ErrorReport(type(error).__name__, str(error))
    report = _report(error, source)
    if report.type == "TimeoutError" and not error.traceback():
        return "timeout", timeout
    if report.type == "MemoryError":
        message = f"The program used more than {limits.memory} of memory."
        return "memory", ErrorReport("MemoryLimit", message, report.line)
    return ("refused" if "monty syntax parser" in report.message else "error"), report


def _report(error: Any, source: _Source) -> ErrorReport:
    """Return an error with its line and its frames in the program's source."""
    kind, _, message = error.display("type-msg").partition(": ")
    frames = [frame for frame in error.traceback() if frame.line <= len(source.lines)]
    lines = [_frame_lines(frame, source) for frame in frames[-MAX_TRACEBACK_FRAMES:]]
    traceback = f"Traceback (most recent call last):\n{''.join(lines)}{kind}: {message}"
    is_gap = (
        kind in ("ModuleNotFoundError", "NotImplementedError", "PermissionError")
        or "not supported" in message
    )
    message = message[:MAX_MESSAGE_CHARS]
    if is_gap:
        message += f". {SUBSET_HINT}"
    return ErrorReport(kind, message, frames[-1].line if frames else None, traceback[-MAX_TRACEBACK_CHARS:])


def _frame_lines(frame: Any, source: _Source) -> str:
    function, line = frame.function_name or "<module>", source.lines[frame.line - 1].strip()
    return f'  File "<code>", line {frame.line}, in {function}\n    {line}\n'


def _with_variables(report: ErrorReport, session: MontySession, source: _Source) -> ErrorReport:
    """Return the report with the values of the program's variables, as far as they can be shown."""
    from pydantic_monty import MontyError

    reads = [
        f"try:\n    __found__[{name!r}] = f'{{{name}!r}}'[:{MAX_VALUE_CHARS}]\nexcept Exception:\n    pass"
        for name in source.names[:MAX_VARIABLES]
    ]
    try:
        values = session.feed_run("\n".join(["__found__ = {}", *reads, "__found__"]))
    except MontyError:
        return report
    return ErrorReport(report.type, report.message, report.line, report.traceback, dict(values))
