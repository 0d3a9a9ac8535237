"""An executor on a sandbox of LangChain's protocol that you opened and pass; `cloud` opens them by name."""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import Collection
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import Any

from code_chains.errors import ConfigurationError, ExecutorError, InputError, IsolationError
from code_chains.executors.limits import Limits
from code_chains.executors.remote.backend_sessions import BackendSession
from code_chains.executors.remote.protocol_sandbox import (
    ProtocolSandbox,
    RunFolder,
    SandboxProtocol,
)
from code_chains.executors.remote.remote_executor import RemoteExecutor
from code_chains.executors.remote.remote_run import CAN_TALK, RemoteRun, connect, connected_runs
from code_chains.executors.remote.server_link import LostServerError, ServerLink
from code_chains.executors.runner import Program
from code_chains.executors.sandbox.tool_server import open_sandbox_calls
from code_chains.executors.tool_calls import ToolCalls
from code_chains.executors.waiting import Operation, blocking
from code_chains.records import PROBED, Execution

__all__ = ["BackendExecutor", "SandboxProtocol"]


class BackendExecutor(RemoteExecutor):
    """Run each program in a third-party sandbox that implements LangChain's sandbox protocol.

    A supervisor inside enforces the time, output, processes, memory and disk of the run, and reports how it ended. Before
    each run a probe tries to reach this machine; its findings are in `Execution.isolation`. Each run has a folder of its
    own, which is removed; the sandbox itself is shared by its runs and everybody else who uses it, and belongs to the
    caller, who closes it. A session leaves a process in the sandbox, which holds its state until it is closed.

    Args:
        backend: The sandbox, e.g. `langchain_daytona.DaytonaSandbox(sandbox=…)`. It needs Linux with `python3` 3.11 or
            newer; programs can import what that has installed.
        limits: Limits of one run.
        required_isolation: What the probe must find closed.
        max_sessions: Sessions that are open at a time. Choose 0 for a sandbox that ends processes with their command: then
            the turns of a conversation share no variables, and there are no tools, hidden tests and live output.
        session_timeout: Seconds without a run after which a session ends.
        tests_backend: Another sandbox, in which hidden tests run: it calls the program through this process. Without it
            there are none, as a program could read and patch what runs beside it.

    Raises:
        ConfigurationError: An argument is invalid.
        IsolationError: Something required is open; raised by a run.

    Example:
        executor = BackendExecutor(DaytonaSandbox(sandbox=Daytona().create()))
        executor.run("sum(range(1, 6))").output
    """

    guidance = (
        "Write Python with the standard library alone, unless you are told what else is installed. Files are in the working"
        " directory."
    )
    reaches_outside = True
    """A service may have a network, whatever it says."""

    def __init__(
        self,
        backend: SandboxProtocol,
        *,
        limits: Limits | None = None,
        required_isolation: Collection[str] = PROBED,
        max_sessions: int = 8,
        session_timeout: float = 900.0,
        tests_backend: SandboxProtocol | None = None,
    ) -> None:
        super().__init__(
            limits=limits,
            required_isolation=required_isolation,
            max_sessions=max_sessions,
            session_timeout=session_timeout,
        )
        own, other = (getattr(one, "id", None) for one in (backend, tests_backend))
        if tests_backend is backend or (own and own == other):
            remedy = "another sandbox than that of programs, which could read the tests there"
            raise ConfigurationError("tests_backend", tests_backend, remedy)
        self._backend, self._remote = backend, self._connect(backend)
        self._tests_remote = None if tests_backend is None else self._connect(tests_backend)
        # All of these need a process that outlives its command, as sessions do.
        can_talk: bool = CAN_TALK and self.has_sessions
        self.takes_tools: bool = can_talk
        self.streams_output: bool = can_talk
        self.runs_tests: bool = self._tests_remote is not None and self.takes_tools
        self._has_server = True

    def _connect(self, backend: SandboxProtocol) -> ProtocolSandbox:
        """Return the sandbox as it is used."""
        return ProtocolSandbox(backend, self.required_isolation)

    @property
    def fingerprint(self) -> dict[str, Any]:
        """What distinguishes its runs from those of other executors: the kind of the sandbox, and its name."""
        return {
            **super().fingerprint,
            "backend": self._remote.name,
            "id": str(getattr(self._backend, "id", "")),
        }

    def _operation(self, program: Program) -> Operation[Execution]:
        folder = RunFolder()
        run = RemoteRun(program, program.within(self.limits))
        return run.operation(partial(self._run, self._remote, folder), partial(self._remote.cancel, folder))

    def _open_calls(self, tools: Any, loop: asyncio.AbstractEventLoop | None) -> ToolCalls[Any] | None:
        return open_sandbox_calls(tools, self.limits, loop)

    def _tested(self, program: Program, tests: str) -> Operation[tuple[Execution, Execution]]:
        if self._tests_remote is None or not self.runs_tests:
            return super()._tested(program, tests)
        runs = connected_runs(program, tests, self.limits)
        places = [(self._remote, RunFolder()), (self._tests_remote, RunFolder())]

        def cancel() -> None:
            for remote, folder in places:
                remote.cancel(folder)

        return blocking(partial(self._run_both, runs, places), cancel)

    def _run_both(
        self, runs: tuple[RemoteRun, RemoteRun], places: list[tuple[ProtocolSandbox, RunFolder]]
    ) -> tuple[Execution, Execution]:
        connect(*runs)
        with ThreadPoolExecutor(2) as threads:
            futures = [
                threads.submit(self._run, *place, run) for run, place in zip(runs, places, strict=True)
            ]
        program, tests = (future.result() for future in futures)
        return program, tests

    def _new_session(self) -> BackendSession:
        return BackendSession(self._remote, self.limits, self._session_timeout)

    def _run(self, remote: ProtocolSandbox, folder: RunFolder, run: RemoteRun) -> Execution:
        folder.has_begun = True
        try:
            self._check_open()
            remote.start()
            if run.must_talk or (run.is_watched and self._has_server):
                return self._talk(remote, folder, run)
            return self._run_once(remote, folder, run.bundle, run.limits)
        except (IsolationError, InputError):
            raise
        except ExecutorError:
            remote.give_up()
            raise
        finally:
            run.close()
            with contextlib.suppress(ExecutorError):
                remote.remove(folder)
            if not folder.is_cancelled or folder.close is None:
                folder.is_settled.set()

    def _talk(self, remote: ProtocolSandbox, folder: RunFolder, run: RemoteRun) -> Execution:
        """Run a program by a server, with which it is talked about while it runs."""
        link = ServerLink(remote, run.limits, folder=folder)
        found = link.start()
        with folder.lock:
            folder.check()
            folder.close = link.close
        try:
            report = run.report_of(link, {"op": "run"})
        except ExecutorError as error:
            if folder.is_cancelled:
                raise
            if not isinstance(error, LostServerError) or not error.was_never_there:
                remote.discard()
                raise
            if run.must_talk:
                remedy = "a sandbox in which processes outlive their command, for tools and hidden tests"
                raise ConfigurationError("executor", remote.name, remedy) from error
            self._has_server = False  # Nobody can watch there.
            remote.remove(folder)
            return self._run_once(remote, folder, run.bundle, run.limits)
        if folder.is_cancelled:  # Who has cancelled it sees to its end.
            folder.check()
        if not report and run.is_harness:  # There is no program that could have killed anything.
            raise ExecutorError(f"{remote.name} lost the run of the tests.", is_retryable=True)
        return run.finish(self._execution(remote, report, run.limits, found))

    def _start(self) -> None:
        self._remote.start()
