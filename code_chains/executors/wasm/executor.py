"""Programs in WebAssembly: the executor."""

from __future__ import annotations

import asyncio
import secrets
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import partial
from typing import Any

from code_chains.errors import (
    check_int,
)
from code_chains.executors.inputs import files_on_disk
from code_chains.executors.limiter import ConcurrencyLimiter
from code_chains.executors.limits import Limits
from code_chains.executors.remote.remote_executor import RemoteExecutor
from code_chains.executors.runner import Program
from code_chains.executors.tool_calls import ToolCalls
from code_chains.executors.waiting import Operation, blocking
from code_chains.executors.wasm.pool import Call, InstancePool
from code_chains.executors.wasm.requests import WasmRequest, open_wasm_calls
from code_chains.executors.wasm.runtime import check_installed
from code_chains.executors.wasm.session import WasmSession
from code_chains.records import Execution

MAX_QUEUED, QUEUE_TIMEOUT_S = 1000, 60.0


class WasmExecutor(RemoteExecutor):
    """Run each program in a new CPython 3.14 in WebAssembly, on Linux, macOS and Windows alike, with Python 3.12 or newer.

    Programs have the standard library without threads, processes, sockets and `ctypes`. They reach no files of the machine
    but copies in their working directory, which is in memory, and no network; the boundary is wasmtime, not the kernel
    (`level="wasm"`). A Python is made in a process that was started in advance, in which a probe has tried to get out. The
    first run on a machine compiles Python, which takes half a minute.

    Args:
        limits: Limits of one run; `processes`, `open_files` and `files` do not apply.
        concurrency: How many programs run at once; others wait.
        max_sessions: Sessions that are open at a time; each has a process of its own.
        session_timeout: Seconds without a run after which a session ends.

    Raises:
        ConfigurationError: An argument is invalid, Python is older than 3.12, or the extra `wasm` is not installed.

    Example:
        with WasmExecutor() as executor:
            executor.run("sum(range(1, 6))").output
    """

    guidance = (
        "Write Python 3.14 with the standard library alone: there are no other packages, and no threads, processes, network,"
        " ctypes, links or times of files, nor more than a thousand nested calls. Files are in the working directory."
    )
    takes_tools = runs_tests = True

    def __init__(
        self,
        *,
        limits: Limits | None = None,
        concurrency: int = 2,
        max_sessions: int = 8,
        session_timeout: float = 900.0,
    ) -> None:
        super().__init__(limits=limits, max_sessions=max_sessions, session_timeout=session_timeout)
        check_installed()
        remedy = "a whole number from 1 to 64"
        self.concurrency: int = check_int("concurrency", concurrency, remedy, minimum=1, maximum=64)
        self._limiter = ConcurrencyLimiter(concurrency, MAX_QUEUED, QUEUE_TIMEOUT_S)
        self._pool = InstancePool(self.limits, concurrency)

    def _operation(self, program: Program) -> Operation[Execution]:
        call = Call()
        return blocking(partial(self._run, call, program), call.cancel)

    def _open_calls(self, tools: Any, loop: asyncio.AbstractEventLoop | None) -> ToolCalls[Any] | None:
        return open_wasm_calls(tools, self.limits, loop)

    def _new_session(self) -> WasmSession:
        return WasmSession(self._pool, self._limiter, self.limits, self._session_timeout)

    def has_module(self, name: str) -> bool | None:
        """Return False: there is nothing but the standard library."""
        return False

    def warm_up(self) -> None:
        """Start a process in the background."""
        self._pool.warm_up()

    def check_capacity(self) -> None:
        """Raise `OverloadedError` if a run would be refused now."""
        self._limiter.check()

    def drain(self, seconds: float = 30.0) -> bool:
        """Refuse further runs, wait for those that were accepted, and close; see `Executor.drain`."""
        ended = self._limiter.shut_down(seconds)
        self.close()
        return ended

    def close(self) -> None:
        """End all runs and sessions, and refuse further ones."""
        self._is_closed = True
        self._pool.close()
        super().close()

    # -- one run ---------------------------------------------------------------------------------------------

    def _run(self, call: Call, program: Program) -> Execution:
        with files_on_disk(program.files) as files:
            request = WasmRequest(program, files, self.limits)
            with self._pool.slot(self._limiter), self._pool.borrowed(call) as (instance, found):
                request.make_python(instance, secrets.token_hex(16))
                execution = request.run(instance, found)
        self._pool.check_open()
        return execution

    def _tested(self, program: Program, tests: str) -> Operation[tuple[Execution, Execution]]:
        calls = Call(), Call()

        def cancel() -> None:
            for call in calls:
                call.cancel()

        return blocking(partial(self._run_tests, calls, program, tests), cancel)

    def _run_tests(
        self, calls: tuple[Call, Call], program: Program, tests: str
    ) -> tuple[Execution, Execution]:
        with files_on_disk(program.files) as files:
            tested = WasmRequest(program, files, self.limits, is_tested=True)
            alone = replace(program, code=tests, tool_calls=None, stdin=None)
            harness = WasmRequest(alone, files, self.limits, is_tested=True, is_harness=True)
            # Invariant: a pair takes one slot, as two pairs could deadlock waiting for their second slots.
            with (
                self._pool.slot(self._limiter),
                self._pool.borrowed(calls[0]) as (one, found),
                self._pool.borrowed(calls[1]) as (other, other_found),
                ThreadPoolExecutor(1) as thread,
            ):
                for request, instance in ((tested, one), (harness, other)):
                    request.make_python(instance, secrets.token_hex(16))
                running = thread.submit(tested.run, one, found, peer=other)
                judged = harness.run(other, other_found, peer=one)
                executions = running.result(), judged
        self._pool.check_open()
        return executions
