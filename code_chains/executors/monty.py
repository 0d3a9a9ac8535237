"""Monty: a small Python of its own, written in Rust, for arithmetic and plain Python in a fraction of a millisecond."""

from __future__ import annotations

import ast
import asyncio
import contextlib
import os
import shutil
import signal
import tempfile
import threading
import time
import warnings
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from code_chains.errors import ExecutorError, InputError, IsolationError
from code_chains.executors.base import Executor, Limits
from code_chains.executors.foreign import PROBE, canary, isolation, load_extra
from code_chains.inputs import check_files, check_variables
from code_chains.parsing import UNREADABLE, syntax_tree
from code_chains.state import ErrorReport, Execution, Isolation, Status

if TYPE_CHECKING:
    from pydantic_monty import Monty, MontyError, MontySession, MountDir

__all__ = ["MontyExecutor"]

INSTEAD = (
    "This place runs a small Python without libraries, inheritance or generators: write it plainly, or use the sandbox."
)
SHARE = 0.1
"""Of `Limits.seconds`: how much later a worker that does not stop is killed, and until when an error's values are
looked up, since looking may take as long as a program."""
WORKDIR = "/box"
SHOWN = "__shown__"
SHOW = f'\nNone if {SHOWN} is None else f"{{{SHOWN}!r}}"[:100000]'
SHOW_NAMED = f"\ntry:\n    {SHOWN} = result if {SHOWN} is None else {SHOWN}\nexcept NameError:\n    pass{SHOW}"


class MontyExecutor(Executor):
    """Runs plain Python in Monty, an interpreter without any way to the machine, in a pool of processes of its own.

    A run costs a fraction of a millisecond. There are numbers, text, lists, dicts, functions, simple classes and a few
    modules (`math`, `json`, `re`, `datetime` ...). What Monty cannot parse is `refused`; other gaps are an `error` that
    says so. Sleeping takes no time. `Limits.memory` bounds the interpreter's heap.

    Args:
        limits: What one run may use.

    Raises:
        ConfigurationError: pydantic-monty is not installed.

    Example:
        >>> with MontyExecutor() as place:
        ...     place.run("sum(range(1, 6))").output
        '15'
    """

    _home: ClassVar[int | None] = None
    """The process whose threads serve Monty; they are not there in a process that is forked from it."""
    language = "python"
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
        self._closed = False

    def run(
        self, code: str, *, files: Mapping[str, Any] | None = None, variables: Mapping[str, Any] | None = None
    ) -> Execution:
        """Run a program to its end; see `Executor.run`. Sleeping takes no time."""
        return self._drive(_Output(self.limits.output_bytes), code, files, variables)

    async def arun(
        self, code: str, *, files: Mapping[str, Any] | None = None, variables: Mapping[str, Any] | None = None
    ) -> Execution:
        """Run a program to its end without blocking the event loop; see `Executor.arun`."""
        output = _Output(self.limits.output_bytes)
        try:
            return await asyncio.to_thread(self._drive, output, code, files, variables)
        except asyncio.CancelledError:
            output.stop()
            raise

    def close(self) -> None:
        """End the workers and refuse further runs."""
        with self._lock:
            self._closed = True
            started, self._started = self._started, None
        if started and self._home == os.getpid():
            started[0].__exit__(None, None, None)

    # -- the workers --------------------------------------------------------------------------------------------------

    def _pool(self) -> tuple[Monty, Isolation]:
        """The workers and what a probe found in them; both from the first run on."""
        with self._lock:
            if self._closed:
                raise ExecutorError("This executor is closed. Make a new one.")
            if self._home not in (None, os.getpid()):
                raise ExecutorError("Monty was started before this process was forked. Fork first, or use spawn.")
            if self._started is None:
                MontyExecutor._home = os.getpid()
                self._started = self._start()
            return self._started

    def _start(self) -> tuple[Monty, Isolation]:
        from pydantic_monty import Monty

        said: list[str] = []
        with contextlib.ExitStack() as stack:
            try:
                pool = stack.enter_context(Monty(feed_duration_limit_grace=SHARE * self.limits.seconds))
                with canary() as given, pool.checkout() as session:
                    session.feed_run(PROBE, inputs={"canary": given}, print_callback=lambda _, text: said.append(text))
            except Exception as error:
                raise ExecutorError(f"Monty could not be started: {error}.", is_retryable=True) from error
            found = isolation("interpreter", "monty", "".join(said))
            if found.open:
                raise IsolationError(f"Nothing was run: inside Monty {', '.join(found.open)} was found open.")
            stack.pop_all()
        return pool, found

    @contextlib.contextmanager
    def _session(self, pool: Monty) -> Iterator[MontySession]:
        limits = {"max_feed_duration_secs": float(self.limits.seconds), "max_memory": self.limits.memory_bytes}
        with contextlib.ExitStack() as stack:
            try:
                session = pool.checkout(limits=limits, os_policy={"sleep": "zero"})  # type: ignore[arg-type]
                stack.enter_context(session)
            except Exception as error:
                raise ExecutorError(f"Monty has no worker for this run: {error}.", is_retryable=True) from error
            yield session

    # -- one run ------------------------------------------------------------------------------------------------------

    def _drive(
        self, output: _Output, code: str, files: Mapping[str, Any] | None, variables: Mapping[str, Any] | None
    ) -> Execution:
        if not isinstance(code, str):
            raise InputError(f"Code must be text, not {type(code).__name__}.")
        inputs, given = check_variables(variables), check_files(files)
        pool, found = self._pool()
        try:
            program = _Program(code, inputs)
        except UNREADABLE as wrong:
            message = wrong.msg if isinstance(wrong, SyntaxError) else str(wrong)
            report = ErrorReport(type(wrong).__name__, message, getattr(wrong, "lineno", None))
            return Execution("error", error=report, isolation=found)
        with _mounted(given) as mount, self._session(pool) as session:
            began = time.monotonic()
            status, error, result = self._ending(session, program, output, mount)
            duration = time.monotonic() - began
        out, err = output.text("stdout"), output.text("stderr")
        isolated = None if status == "refused" else found
        return Execution(status, out, err, result, error, duration=duration, truncated=output.full, isolation=isolated)

    def _ending(
        self, session: MontySession, program: _Program, output: _Output, mount: MountDir | None
    ) -> tuple[Status, ErrorReport | None, str | None]:
        """Status, error and result of the program in this session."""
        from pydantic_monty import MontyError

        began = time.monotonic()
        try:
            with output.watching(session.worker_pid):
                shown = session.feed_run(
                    program.text, inputs=program.inputs, print_callback=output.keep, mount=mount, cwd=mount and WORKDIR
                )
        except MontyError as error:
            status, report = _failure(error, program, self.limits, output.full)
            early = time.monotonic() - began < SHARE * self.limits.seconds
            if status == "error" and early and report.line:
                report = _with_values(report, session, program)
            return status, report, None
        return "ok", None, shown


class _Program:
    """A program's text as Monty gets it: the value of its last expression is kept under a name and shown at its end."""

    def __init__(self, code: str, inputs: dict[str, Any]) -> None:
        code = code.replace("\r\n", "\n").replace("\r", "\n")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            tree = syntax_tree(code)
        self.inputs = inputs
        self.lines = code.split("\n")
        stored = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
        self.names = sorted(stored | set(inputs))
        last = tree.body[-1] if tree.body else None
        kept = self._keep(last) if isinstance(last, ast.Expr) else f"{code}\n{SHOWN} = None"
        self.text = kept + (SHOW_NAMED if "result" in stored - set(inputs) else SHOW)

    def _keep(self, last: ast.Expr) -> str:
        """The program with its last expression, `a + b`, as `(__shown__ := (a + b))`."""
        lines = [line.encode() for line in self.lines]
        start = sum(len(line) + 1 for line in lines[: last.value.lineno - 1]) + last.value.col_offset
        end = sum(len(line) + 1 for line in lines[: (last.value.end_lineno or 1) - 1]) + (
            last.value.end_col_offset or 0
        )
        code = b"\n".join(lines)
        return b"".join((code[:start], f"({SHOWN} := (".encode(), code[start:end], b"))", code[end:])).decode()


class _Output:
    """What a run printed, up to a limit, and the worker to kill when there is more."""

    def __init__(self, limit: int) -> None:
        self.full = False
        self._limit = limit
        self._kept = {"stdout": bytearray(), "stderr": bytearray()}
        self._lock = threading.Lock()
        self._worker: int | None = None
        self._stopped = False

    def text(self, stream: str) -> str:
        return self._kept[stream].decode(errors="replace")

    def keep(self, stream: str, text: str) -> None:
        kept, data = self._kept[stream], text.encode(errors="replace")
        kept += data[: self._limit - len(kept)]
        if len(kept) >= self._limit and not self.full:
            self.full = True
            self.stop()

    def stop(self) -> None:
        """End the program, whether it has begun or not; the pool replaces the worker."""
        with self._lock:
            self._stopped = True
            if self._worker is not None:
                with contextlib.suppress(ProcessLookupError):
                    os.kill(self._worker, signal.SIGKILL)

    @contextlib.contextmanager
    def watching(self, worker: int | None) -> Iterator[None]:
        with self._lock:
            self._worker = worker
        try:
            if self._stopped:
                self.stop()
            yield
        finally:
            with self._lock:
                self._worker = None


@contextlib.contextmanager
def _mounted(files: Mapping[str, Path]) -> Iterator[MountDir | None]:
    """Copies of the files that the program can read and not change."""
    if not files:
        yield None
        return
    from pydantic_monty import MountDir

    with tempfile.TemporaryDirectory(prefix="code_chains-") as folder:
        for name, path in files.items():
            target = Path(folder, name)
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(path, target)
        with MountDir(host_path=folder, virtual_path=WORKDIR, mode="read-only") as mount:
            yield mount


def _failure(error: MontyError, program: _Program, limits: Limits, flooded: bool) -> tuple[Status, ErrorReport]:
    """What an error of Monty's means."""
    from pydantic_monty import MontyCrashedError, MontyRuntimeError, MontySyntaxError

    if flooded:
        return "output_limit", ErrorReport("OutputLimit", f"More than {limits.output} bytes were printed.")
    late = ErrorReport("Timeout", f"The program did not end within {limits.seconds:g} seconds.")
    if isinstance(error, MontyCrashedError):
        return ("timeout", late) if error.timed_out else ("killed", ErrorReport("Killed", str(error)))
    if not isinstance(error, MontyRuntimeError | MontySyntaxError):
        return "error", ErrorReport(type(error).__name__, str(error))
    report = _report(error, program)
    if report.type == "TimeoutError" and not error.traceback():
        return "timeout", late
    if report.type == "MemoryError":
        return "memory", ErrorReport(
            "MemoryLimit", f"The program used more than {limits.memory} of memory.", report.line
        )
    return ("refused" if "monty syntax parser" in report.message else "error"), report


def _report(error: Any, program: _Program) -> ErrorReport:
    """An error with its line and its frames in the program's own words."""
    kind, _, message = error.display("type-msg").partition(": ")
    frames = [frame for frame in error.traceback() if frame.line <= len(program.lines)]
    shown = [
        f'  File "<code>", line {frame.line}, in {frame.function_name or "<module>"}\n'
        f"    {program.lines[frame.line - 1].strip()}\n"
        for frame in frames[-8:]
    ]
    text = f"Traceback (most recent call last):\n{''.join(shown)}{kind}: {message}"
    limited = kind in ("ModuleNotFoundError", "NotImplementedError", "PermissionError") or "not supported" in message
    message = f"{message[:2000]}{'. ' + INSTEAD if limited else ''}"
    return ErrorReport(kind, message, frames[-1].line if frames else None, text[-6000:])


def _with_values(report: ErrorReport, session: MontySession, program: _Program) -> ErrorReport:
    """The report with the values of the program's names, as far as they can be shown."""
    from pydantic_monty import MontyError

    look = [
        f"try:\n    __found__[{name!r}] = f'{{{name}!r}}'[:200]\nexcept Exception:\n    pass"
        for name in program.names[:12]
    ]
    try:
        values = session.feed_run("\n".join(["__found__ = {}", *look, "__found__"]))
    except MontyError:
        return report
    return ErrorReport(report.type, report.message, report.line, report.traceback, dict(values))
