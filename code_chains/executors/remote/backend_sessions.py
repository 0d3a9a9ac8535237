"""Sessions in third-party sandboxes and containers: a server inside holds the state; each run is a command that asks it."""

from __future__ import annotations

import asyncio
import contextlib
import os
import time
from collections.abc import Callable, Iterator, Mapping
from functools import partial
from typing import Any

from code_chains.errors import ConfigurationError, ExecutorError, InputError, IsolationError, SessionError
from code_chains.executors.limits import Limits
from code_chains.executors.process_session import ProcessSession
from code_chains.executors.remote.protocol_sandbox import ProtocolSandbox
from code_chains.executors.remote.remote_run import CAN_TALK, RemoteRun
from code_chains.executors.remote.server_link import LostServerError, ServerLink
from code_chains.executors.remote.supervised import is_confined, is_lost
from code_chains.executors.runner import Program
from code_chains.executors.sandbox.tool_server import open_sandbox_calls
from code_chains.executors.tool_calls import ToolCalls
from code_chains.executors.waiting import Operation, blocking, drive
from code_chains.records import Execution, Isolation

_IDLE = "it was idle"
IDLE_GRACE_S = 1.0
"""Seconds by which a session's server outlives the timeout: this side then knows of the end, and its reason, before."""


class BackendSession(ProcessSession):
    """A session of a `BackendExecutor`; made by its `session()`.

    The state is a process in the sandbox, as in a `SandboxSession`: each run is a fork of it, which replaces it if the
    program succeeded. Files are rolled back in the working directory and the folder for temporary files.

    Args:
        sandbox: The sandbox.
        limits: Limits of one run.
        timeout: Seconds without a run after which it ends.
    """

    returns_values = takes_stdin = True
    takes_tools: bool = CAN_TALK
    streams_output: bool = CAN_TALK

    def __init__(self, sandbox: ProtocolSandbox, limits: Limits, timeout: float) -> None:
        super().__init__(limits)
        self._sandbox, self._timeout = sandbox, timeout
        self._link = ServerLink(sandbox, limits, timeout + IDLE_GRACE_S)
        self._isolation: Isolation | None = None
        self._is_started, self._is_told = False, False
        self._used_at = time.monotonic()

    @property
    def alive(self) -> bool:
        """Whether it can be used, as far as that is known without asking the sandbox."""
        is_at_rest = self._is_started and not self._lock.locked()
        if is_at_rest and time.monotonic() - self._used_at > self._timeout:
            self._end_reason = self._end_reason or f"{_IDLE} for {self._timeout:g} seconds"
        return self._end_reason is None

    def _operation(self, program: Program) -> Operation[Execution]:
        end = partial(self._end, "a run was interrupted (CancelledError)")
        return RemoteRun(program, self._limits).operation(self._run_alone, end)

    def _open_calls(self, tools: Any, loop: asyncio.AbstractEventLoop | None) -> ToolCalls[Any] | None:
        return open_sandbox_calls(tools, self._limits, loop)

    def _run_alone(self, run: RemoteRun) -> Execution:
        with self._exclusive():
            return self._run(run)

    def _change(self, command: dict[str, Any]) -> None:
        with self._exclusive():
            self._command(command)

    def abandon(self, reason: str) -> None:
        """End the session together with its sandbox, which need not be told."""
        self._is_told = True
        super().abandon(reason)
        self._link.folder.is_given_up = True

    # -- runs ------------------------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _exclusive(self) -> Iterator[None]:
        """Run one operation at a time, and end the session if one broke half way."""
        self._check_open()
        self._occupy()
        try:
            self._check_open()
            yield
        except (ExecutorError, KeyboardInterrupt) as error:
            if not isinstance(error, SessionError):
                self._end(f"a run was interrupted ({type(error).__name__})")
            if isinstance(error, ExecutorError) and not isinstance(error, SessionError | IsolationError):
                self._sandbox.give_up()
            raise
        finally:
            self._used_at = time.monotonic()
            self._lock.release()

    def _run(self, run: RemoteRun) -> Execution:
        found = self._found
        report = self._report(run.report_of, self._link, {"op": "cell"})
        if message := report.get("input_error"):
            raise InputError(str(message))
        execution = run.finish(self._sandbox.execution_of(report, self._limits, found))
        if report.get("is_committed") is True and not execution.ok:
            # It succeeded, but had printed too much before that was noticed.
            self._command({"op": "rollback"})
        undo = partial(blocking, partial(self._command, {"op": "rollback"}))
        return drive(self._checked(execution, run.program.check, undo))

    def _command(self, command: Mapping[str, str]) -> None:
        _ = self._found
        report = self._report(self._link.ask, {"op": "command", "command": command})
        if message := report.get("session_error"):
            raise SessionError(str(message))

    # -- the server in the sandbox ---------------------------------------------------------------------------

    @property
    def _found(self) -> Isolation:
        """What the probe found; the server is started if it was not."""
        if self._isolation is None:
            self._sandbox.start()
            self._is_started = True
            self._isolation = self._link.start()
            self._check_open()  # It may have been closed during the operation.
        return self._isolation

    def _report(self, ask: Callable[..., dict[str, Any]], *arguments: Any) -> dict[str, Any]:
        """Return the server's reply to a request.

        Raises:
            SessionError: It has ended.
            ConfigurationError: The sandbox cannot have sessions.
            ExecutorError: The sandbox broke.
        """
        try:
            report = ask(*arguments)
        except LostServerError as error:
            self._end(str(error))
            if error.was_never_there:
                remedy = (
                    "a sandbox in which processes outlive their command; this one needs"
                    " BackendExecutor(…, max_sessions=0)"
                )
                raise ConfigurationError("executor", self._sandbox.name, remedy) from error
            self._sandbox.discard()
            self._check_open()
            raise
        if is_lost(report):
            # What the kernel confines has ended nothing of ours; the server ends all of it, and itself.
            self._is_told = is_confined(report) and "remains" not in report
            # Neither idle for too long nor closed: a program has ended it.
            if self.alive and not self._is_told:
                self._sandbox.discard()
            self._end(str(report.get("broken") or "its process was killed"))
            self._check_open()
        return report

    def _check_open(self) -> None:
        self._check_owner()
        if not self.alive:  # It may have been idle for too long.
            super()._check_open()

    def _end(self, reason: str) -> None:
        must_tell = self._is_started and not self._is_told and self._pid == os.getpid()
        self.abandon(reason)
        if must_tell and not self._link.close() and not reason.startswith(_IDLE):
            self._sandbox.discard()  # Something of it may go on.
